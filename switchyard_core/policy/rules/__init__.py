"""Lint rules: one module each, whose docstring is its page, its help and its test."""

from __future__ import annotations

from switchyard_core.policy.rules.base import Rule
from switchyard_core.policy.rules.credential_in_policy import CredentialInPolicy
from switchyard_core.policy.rules.endpoint_in_url import EndpointInUrl
from switchyard_core.policy.rules.key_over_plain_http import KeyOverPlainHttp
from switchyard_core.policy.rules.misspelt_tool import MisspeltTool
from switchyard_core.policy.rules.overflow_without_window import OverflowWithoutWindow
from switchyard_core.policy.rules.path_that_never_matches import PathThatNeverMatches
from switchyard_core.policy.rules.price_of_no_target import PriceOfNoTarget
from switchyard_core.policy.rules.route_named_like_a_model import RouteNamedLikeAModel
from switchyard_core.policy.rules.rule_for_bodies_of_no_route import RuleForBodiesOfNoRoute
from switchyard_core.policy.rules.same_model_on_both_sides import SameModelOnBothSides
from switchyard_core.policy.rules.shadowed_rule import ShadowedRule
from switchyard_core.policy.rules.unused_client import UnusedClient
from switchyard_core.policy.rules.unused_target import UnusedTarget

__all__ = ["RULES"]

#: Every lint rule of switchyard, by code.
RULES: tuple[Rule, ...] = (
    CredentialInPolicy(),
    UnusedTarget(),
    UnusedClient(),
    KeyOverPlainHttp(),
    PriceOfNoTarget(),
    OverflowWithoutWindow(),
    EndpointInUrl(),
    SameModelOnBothSides(),
    RouteNamedLikeAModel(),
    RuleForBodiesOfNoRoute(),
    ShadowedRule(),
    MisspeltTool(),
    PathThatNeverMatches(),
)
