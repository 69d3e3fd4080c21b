"""A request told in another wire format and back: nothing is lost but what the table says.

``wire/losses.toml`` is the table. What is not in it must be the same, whatever the request.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.errors import BodyError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.testing import validity_problems
from switchyard_core.wire import FORMATS, endpoint_of
from switchyard_core.wire.losses import all_losses
from switchyard_core.wire.naming import ToolNames, id_at_target
from switchyard_core.wire.neutral import (
    AskedTool,
    Call,
    Facts,
    Media,
    NeutralRequest,
    Result,
    Thought,
    ToolName,
    Words,
)
from tests.support.mutated import broken_bodies, broken_body
from tests.support.neutral import FACTS, requests

TIMES = int(os.environ.get("SWITCHYARD_STRESS_TIMES", "1"))
pytestmark = pytest.mark.timeout(120 * TIMES)
PAIRS = [*product(WIRE_FORMATS, WIRE_FORMATS)]
#: A model that takes all that the format has.
ABLE = Facts(reasoning_key="reasoning_content", system_rows=True)
#: Losses that a report of the request has to name, each time.
NAMED = {
    *("cache_marks", "reasoning", "image_detail", "stop", "media_in_results", "refusals", "effort"),
    *("files_by_address", "text_files", "file_names", "odd_arguments", "system_rows", "top_k"),
    *("schema", "json_object", "sampling_of_chat", "openai_settings", "metadata", "temperature"),
    *("top_p", "top_logprobs", "service_tier", "order_of_text"),
}


def read(body: bytes, wire_format: WireFormat) -> NeutralRequest:
    return FORMATS[wire_format].neutral(ObjectText(body))


def known(caller: WireFormat, target: WireFormat) -> set[str]:
    """Return what the table says that a pair does not keep."""
    if caller == target:
        return set()
    return {row.id for row in all_losses() if caller in row.callers and target in row.at}


# --- what differs between two requests, in the words of the table -----------------------------


def differences(old: NeutralRequest, new: NeutralRequest, target: WireFormat) -> set[str]:
    """Return what another format made different."""
    return {
        *_differing_tools(old, new, ToolNames(old.tools, FORMATS[target])),
        *_differing_calls(old, new, target),
        *_differing_words(old, new),
        *_differing_media(old, new),
        *_differing_settings(old, new),
    }


def _parts(request: NeutralRequest, *kinds: type) -> list[Any]:
    parts = [part for turn in request.turns for part in turn.parts]
    return [part for part in parts if isinstance(part, kinds)]


def _differing_tools(old: NeutralRequest, new: NeutralRequest, names: ToolNames) -> Iterator[str]:
    told = {each.tool: each for each in new.tools}
    allowed = old.choice.allowed if old.choice is not None else ()
    for tool in old.tools:
        there = told.pop(names.at_target(tool.tool), None)
        if there is None:
            yield "allowed_tools" if allowed and tool.tool not in allowed else "tools"
            continue
        yield from _differing_names(tool.tool, there.tool)
        yield from _differing_tool(tool, there)
    made_up = _offered_for_history(old, new, set(told))
    if told and not made_up:
        yield "tools"
    if old.choice != new.choice and not made_up:
        yield from _differing_choice(old, new, names)
    if old.parallel is False and new.parallel is not False and new.tools:
        none = new.choice is not None and new.choice.mode == "none"
        if not none:
            yield "parallel"


def _differing_names(old: ToolName, new: ToolName) -> Iterator[str]:
    if old.namespace != new.namespace:
        yield "namespaces"
    if old.name != new.name and not (old.namespace and new.name.endswith(old.name)):
        yield "tool_names"


def _differing_tool(old: AskedTool, new: AskedTool) -> Iterator[str]:
    if old.custom != new.custom:
        yield "free_form_tools"
        if old.grammar:
            yield "grammars"
    elif json.loads(old.parameters or "{}") != json.loads(new.parameters or "{}"):
        if old.parameters or json.loads(new.parameters) != {"type": "object", "properties": {}}:
            yield "parameters"
    elif old.grammar != new.grammar:
        yield "grammars"
    if old.description not in new.description:
        yield "descriptions"
    if old.about_namespace != new.about_namespace:
        yield "about_namespaces"
    if bool(old.strict) != bool(new.strict):
        yield "strict_tools"
    if old.cache != new.cache:
        yield "cache_marks"


def _offered_for_history(old: NeutralRequest, new: NeutralRequest, told: set[ToolName]) -> bool:
    """Return whether tools are there only because a provider wants those of the history."""
    called = {call.tool for call in _parts(new, Call)}
    none = new.choice is not None and new.choice.mode == "none"
    return not old.tools and none and told == called


def _differing_choice(old: NeutralRequest, new: NeutralRequest, names: ToolNames) -> Iterator[str]:
    mode = old.choice.mode if old.choice else "auto"
    if (new.choice.mode if new.choice else "auto") != mode and old.tools:
        yield "choice"
    allowed = old.choice.allowed if old.choice else ()
    kept = new.choice.allowed if new.choice else ()
    if tuple(map(names.at_target, allowed)) != kept:
        offered = {names.at_target(tool) for tool in allowed}
        cut = {tool.tool for tool in new.tools} <= offered
        yield "allowed_tools" if cut and not kept else "choice"


def _differing_calls(old: NeutralRequest, new: NeutralRequest, target: WireFormat) -> Iterator[str]:
    before, after = _parts(old, Call), _parts(new, Call)
    if [id_at_target(call.id, FORMATS[target]) for call in before] != [c.id for c in after]:
        yield "calls"
        return
    names = ToolNames(old.tools, FORMATS[target])
    for call, there in zip(before, after, strict=True):
        if names.at_target(call.tool) != there.tool:
            yield "called_tools"
        yield from _differing_names(call.tool, there.tool)
        if call.cache != there.cache:
            yield "cache_marks"
        yield from _differing_arguments(call, there)
    results = {result.call_id: result for result in _parts(new, Result)}
    for result in _parts(old, Result):
        told = results.get(id_at_target(result.call_id, FORMATS[target]))
        if told is None:
            yield "results"
            continue
        if result.failed != told.failed:
            yield "failed_results"
        if result.cache != told.cache or _marks(result.parts) != _marks(told.parts):
            yield "cache_marks"
        if _media(result.parts) != _media(told.parts):
            yield "media_in_results"
        if not _within(_texts(result.parts), _texts(told.parts)):
            yield "texts"


def _differing_arguments(old: Call, new: Call) -> Iterator[str]:
    if old.custom != new.custom:
        yield "free_form_tools"
        if json.loads(new.arguments) != {"input": old.arguments}:
            yield "arguments"
    elif old.custom:
        if old.arguments != new.arguments:
            yield "arguments"
    elif _object(old.arguments) is None:
        if new.arguments != old.arguments:
            same = json.loads(new.arguments) == {"_raw": old.arguments}
            yield "odd_arguments" if same else "arguments"
    elif _object(old.arguments) != _object(new.arguments):
        yield "arguments"


def _object(text: str) -> Any:
    """Return arguments with numbers as they are written and members that occur twice."""
    try:
        tree = json.loads(text or "{}", parse_float=str, parse_int=str, object_pairs_hook=tuple)
    except ValueError:
        return None
    return tree if isinstance(tree, tuple) and (text or "{}").lstrip()[:1] == "{" else None


def _differing_words(old: NeutralRequest, new: NeutralRequest) -> Iterator[str]:
    first, second = old.instructions, new.instructions
    if _joined(first) != _joined(second):
        yield "texts"
    elif [words.text for words in first] != [words.text for words in second]:
        yield "instructions"
    if _marks(first) != _marks(second):
        yield "cache_marks"
    thoughts = [[part.text for part in _parts(each, Thought)] for each in (old, new)]
    if thoughts[0] != thoughts[1] and "\n\n".join(thoughts[0]) != "\n\n".join(thoughts[1]):
        yield "reasoning"
    for role in ("user", "assistant", "system"):
        before, after = _of_role(old, role), _of_role(new, role)
        if not _within(_texts(before), _texts(after)):
            user = role == "system" and _within(_texts(before), _texts(_of_role(new, "user")))
            yield "system_rows" if user else "texts"
        if _marks(before) != _marks(after):
            yield "cache_marks"
    refused = [[w.text for w in _parts(each, Words) if w.refusal] for each in (old, new)]
    if refused[0] != refused[1]:
        yield "refusals"
    yield from _differing_order(old, new)


def _differing_order(old: NeutralRequest, new: NeutralRequest) -> Iterator[str]:
    orders = []
    for request in (old, new):
        turns = [turn.parts for turn in request.turns if turn.role == "assistant"]
        orders.append(
            [
                [isinstance(part, Call) for part in parts if isinstance(part, Call | Words)]
                for parts in turns
            ]
        )
    runs = [["".join("c" if call else "w" for call in turn) for turn in order] for order in orders]
    plain = [[_one_text(turn) for turn in turns if turn] for turns in runs]
    if plain[0] != plain[1]:
        behind = any("cw" in turn for turn in plain[0])
        yield "order_of_text" if behind else "order"
    roles = [[turn.role for turn in request.turns] for request in (old, new)]
    if "system" in roles[0] and sorted(roles[0]) == sorted(roles[1]) and roles[0] != roles[1]:
        yield "system_rows"
    roles = [[role for role in each if role != "system"] for each in roles]
    if roles[0] != roles[1] and not _parts(old, Thought):
        # A user message behind the results may be new.
        short = [role for role in roles[0] if role != "user"]
        if short != [role for role in roles[1] if role != "user"]:
            yield "turns"


def _one_text(turn: str) -> str:
    while "ww" in turn:
        turn = turn.replace("ww", "w")
    return turn


def _differing_media(old: NeutralRequest, new: NeutralRequest) -> Iterator[str]:
    before, after = list(_all_media(old)), list(_all_media(new))
    urls = Counter(media.url for media in after)
    for media in before:
        if urls[media.url]:
            urls[media.url] -= 1
        elif media.kind == "file" and not media.url.startswith("data:"):
            yield "files_by_address"
        elif media.url.startswith("data:text/"):
            yield "text_files"
        else:
            yield "media"
    for key, loss in (("detail", "image_detail"), ("cache", "cache_marks")):
        told = [
            Counter(getattr(m, key) for m in media if getattr(m, key)) for media in (before, after)
        ]
        if told[0] != told[1]:
            yield loss
    names = Counter((media.url, media.name) for media in after)
    urls = Counter(media.url for media in after)
    for media in (m for m in before if m.name and urls[m.url]):
        names[media.url, media.name] -= 1
        if names[media.url, media.name] < 0:
            yield "file_names" if "://" in media.url else "names"


def _differing_settings(old: NeutralRequest, new: NeutralRequest) -> Iterator[str]:
    if old.schema != new.schema:
        yield from _differing_schema(old, new)
    for key in ("model", "stream", "stop", "effort"):
        if getattr(old, key) != getattr(new, key):
            yield key
    if old.limit != new.limit and old.limit is not None:
        yield "limit"
    groups = {
        **dict.fromkeys(("seed", "frequency_penalty", "presence_penalty"), "sampling_of_chat"),
        **dict.fromkeys(("logprobs", "verbosity", "store", "cache_key"), "openai_settings"),
    }
    for name in {*old.settings, *new.settings}:
        before, after = old.settings.get(name), new.settings.get(name)
        usual = name == "store" and {before, after} <= {None, b"false"}
        identified = name == "user" and after == old.settings.get("safety_identifier")
        if before != after and not usual and not identified:
            yield groups.get(name, name)


def _differing_schema(old: NeutralRequest, new: NeutralRequest) -> Iterator[str]:
    if old.schema is None:
        yield "answers"
    elif new.schema is None:
        yield "json_object" if not old.schema.schema else "answers"
    else:
        named = new.schema.name == (old.schema.name or "answer")
        same = json.loads(old.schema.schema or "{}") == json.loads(new.schema.schema or "{}")
        if not named or not same or old.schema.strict != new.schema.strict:
            yield "schema" if old.schema.name or not same else "name of a schema"


def _all_media(request: NeutralRequest) -> Iterator[Media]:
    yield from _parts(request, Media)
    for result in _parts(request, Result):
        yield from (part for part in result.parts if isinstance(part, Media))


def _of_role(request: NeutralRequest, role: str) -> list[Any]:
    return [part for turn in request.turns if turn.role == role for part in turn.parts]


def _media(parts: Any) -> list[str]:
    return [part.url for part in parts if isinstance(part, Media)]


def _texts(parts: Any) -> list[str]:
    return [part.text for part in parts if isinstance(part, Words)]


def _marks(parts: Any) -> list[bytes]:
    return [part.cache for part in parts if isinstance(part, Words | Media) and part.cache]


def _joined(parts: tuple[Words, ...]) -> str:
    return "\n\n".join(words.text for words in parts)


def _within(texts: list[str], told: list[str]) -> bool:
    """Return whether texts are in others, in order, each at a place of its own."""
    rest = "\n\n".join(told)
    for text in texts:
        _, found, rest = rest.partition(text)
        if not found:
            return False
    return True


# --- the properties ---------------------------------------------------------------------------

#: Shrinking explains enough.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)


def told(body: bytes) -> bytes:
    """Return a body without what it means anyway: Responses alone has to say it."""
    return body.replace(b',"strict":false', b"")


@settings(max_examples=500 * TIMES, deadline=None, phases=PHASES)
@given(requests(), FACTS, st.sampled_from(PAIRS))
def test_nothing_is_lost_there_and_back_but_what_the_table_says(
    request: NeutralRequest, facts: Facts, pair: tuple[WireFormat, WireFormat]
) -> None:
    caller, target = pair
    said = read(FORMATS[caller].write(request, ABLE), caller)
    lines = len(said.told.lines)
    body = FORMATS[target].write(said, ABLE)
    there = read(body, target)

    found = differences(said, there, target)
    assert found - known(caller, target) == set()
    assert not found & NAMED or len(said.told.lines) > lines
    assert FORMATS[target].write(read(body, target), ABLE) == body

    # What came from the caller's format is sayable there: back again, nothing more goes.
    back = read(FORMATS[caller].write(there, ABLE), caller)
    lost = differences(there, back, caller)
    assert lost - known(target, caller) == set()
    again = FORMATS[target].write(read(FORMATS[caller].write(back, ABLE), caller), ABLE)
    # Where a turn of reasoning alone is gone, or instructions within the history became words of
    # the user, their neighbours are one, and so are their texts.
    joined = "reasoning" in found or any(turn.role == "system" for turn in said.turns)
    assert told(again) == told(body) or joined or lost & {"tool_names", "system_rows"}

    # Whatever a model takes, what was written for it is written the same again.
    fitted = FORMATS[target].write(read(FORMATS[caller].write(request, ABLE), caller), facts)
    assert FORMATS[target].write(read(fitted, target), facts) == fitted


@settings(max_examples=500 * TIMES, deadline=None, phases=PHASES)
@given(broken_bodies(2), FACTS, st.sampled_from(WIRE_FORMATS))
def test_any_body_is_translated_or_refused(
    broken: tuple[WireFormat, bytes, bytes], facts: Facts, target: WireFormat
) -> None:
    caller, _, data = broken
    try:
        request = read(data, caller)
    except BodyError:
        return

    body = FORMATS[target].write(request, facts)

    # Odd values may need a second look to become what is stable.
    again = FORMATS[target].write(read(body, target), facts)
    assert FORMATS[target].write(read(again, target), facts) == again


# --- what real clients sent -------------------------------------------------------------------

CAPTURED: dict[str, tuple[WireFormat, bytes]] = {
    path.stem: (endpoint_of(sent["path"])[0], json.dumps(sent["body"]).encode())
    for path in sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.json"))
    for sent in [json.loads(path.read_text())["request"]]
}


def test_what_real_clients_send_is_valid_in_every_format() -> None:
    problems = []
    for (name, (caller, data)), target in product(CAPTURED.items(), WIRE_FORMATS):
        # The history of openai-agents-2 is at its provider: such a request is refused.
        if caller == target or name == "openai-agents-2":
            continue
        body = FORMATS[target].write(read(data, caller), Facts())
        found = validity_problems(target, body, sdk=True)
        problems += [f"{name} at {target}: {each}" for each in found]
        lost = differences(read(data, caller), read(body, target), target) - known(caller, target)
        problems += [f"{name} at {target}: lost {each}" for each in sorted(lost)]

    assert problems == []


@settings(max_examples=100 * TIMES, deadline=None, phases=PHASES)
@given(st.integers(0, 2**48), st.sampled_from(PAIRS))
def test_capture_with_a_wrong_node_is_translated_or_refused(
    number: int, pair: tuple[WireFormat, WireFormat]
) -> None:
    caller, target = pair
    data = broken_body([data for spoken, data in CAPTURED.values() if spoken == caller], number)
    try:
        request = read(data, caller)
    except BodyError:
        return

    body = FORMATS[target].write(request, Facts())

    assert json.loads(body)
    again = FORMATS[target].write(read(body, target), Facts())
    assert FORMATS[target].write(read(again, target), Facts()) == again
