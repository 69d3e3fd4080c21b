"""The keys of a mutation rule set, as a policy or a pack writes them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "DEFAULT_PATH",
    "TEXT_PATH",
    "ConditionModel",
    "RuleModel",
    "RuleSetModel",
    "TextRuleModel",
]

#: The tool-name nodes of the conversation document, which a rule reads unless it says otherwise.
DEFAULT_PATH = "$.messages[*].content[?(@.type == 'tool_call')].name"
#: The texts of the conversation document, of which text rules read the assistant's.
TEXT_PATH = "$.messages[*].content[?(@.type == 'text')].text"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ConditionModel(_Table):
    """A test of one value of a tool call: exactly one of the five tests, perhaps negated.

    Args:
        path: JSONPath relative to the tool call, such as ``$.arguments.command``.
        equals: The value is this one.
        in_: The value is one of these (key ``in``).
        not_in: The value is not one of these.
        matches: The value is text in which this regular expression is found.
        exists: Whether there is a value other than null.
        not_: Negates the test (key ``not``).

    ``equals``, ``in`` and ``not_in`` compare texts without case and without blanks around them.
    An absent value is judged like null: it is none of the values that a condition can name.
    """

    path: str
    equals: Any = None
    in_: list[Any] | None = Field(default=None, alias="in")
    not_in: list[Any] | None = None
    matches: str | None = None
    exists: bool | None = None
    not_: bool = Field(default=False, alias="not")


class RuleModel(_Table):
    """One rule: which calls it is about and how they are labelled.

    Args:
        name: For verdicts and ``explain``.
        label: One of the five labels; required unless ``target`` or ``reader`` is given.
        path: JSONPath to the tool-name nodes.
        match: Whole names, globs, or ``re:`` patterns.
        where: Conditions that must all hold.
        target: JSONPath, relative to the call, to the files that it writes, or to an object that
            has them under the usual keys.
        reader: ``shell``, ``recurse``, ``code`` or ``patch``.
        command: JSONPath, relative to the call, to what the reader reads.
        dialect: ``bash``, ``powershell``, ``cmd`` or ``auto``, for ``reader = "shell"``.
        document: ``conversation`` or ``body``: what ``path`` runs on.
        format: Wire format of the body, required with ``document = "body"``.
        scratch: Whether scratch paths lower the label of a ``target``.
    """

    name: str = ""
    label: str | None = None
    path: str = DEFAULT_PATH
    match: list[str] = Field(default_factory=list)
    where: list[ConditionModel] = Field(default_factory=list)
    target: str | None = None
    reader: str | None = None
    command: str | None = None
    dialect: str | None = None
    document: str = "conversation"
    format: str | None = None
    scratch: bool = False


class TextRuleModel(_Table):
    """A rule on edits that the assistant writes as text.

    Args:
        name: For verdicts and ``explain``.
        reader: ``search_replace``, ``unified_diff``, ``write_tags`` or ``whole_file``: the form of
            the edits.
        label: Label of an edit, default ``file_edit``; artefact and plan paths lower it.
        scratch: Whether scratch paths also lower the label.
        instructions: Regular expression that must be found in the client's instructions.
    """

    name: str = ""
    reader: str
    label: str | None = None
    scratch: bool = False
    instructions: str | None = None


class RuleSetModel(_Table):
    """A rule set: ``[mutation_rules.<name>]`` of a policy, or a whole pack.

    Args:
        description: One line for ``switchyard packs``.
        extends: Names of rule sets that are tried after these rules, in order.
        fold: Whether names match with any prefix and separators.
        unmatched: Label of a call that no rule decides, default ``read_only``.
        argument_hint: Whether the name of such a call's tool and the keys of its arguments may make
            it ``unknown`` or an edit, default false.
        scratch_paths: Globs added to the default scratch paths.
        artifact_paths: Globs added to the default artefact paths.
        plan_paths: Globs added to the default plan documents.
        rules: Tried in order.
        text: Rules on edits that the assistant writes as text, tried in order.
        examples_end: Regular expressions that are found in the user's message that ends the
            examples at the beginning of a history; edits before it did not happen.
    """

    description: str = ""
    extends: list[str] = Field(default_factory=list)
    fold: bool = True
    unmatched: str | None = None
    argument_hint: bool | None = None
    scratch_paths: list[str] = Field(default_factory=list)
    artifact_paths: list[str] = Field(default_factory=list)
    plan_paths: list[str] = Field(default_factory=list)
    rules: list[RuleModel] = Field(default_factory=list)
    text: list[TextRuleModel] = Field(default_factory=list)
    examples_end: list[str] = Field(default_factory=list)
