"""The named repairs that a rule of a profile may ask for (``do = "convert"``).

Each changes what no single verb can: it knows the wire formats, is idempotent, and tells its
changes. What varies between models is the rule's ``value``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from switchyard_core.decision import RewriteScope
from switchyard_core.declarations import WireFormat
from switchyard_core.jsonio.tree import ArrayText, ObjectText, encode
from switchyard_core.wire import FORMATS
from switchyard_core.wire.history import blank, fixed_text, role_at
from switchyard_core.wire.messages.view import (
    open_loop_lacks_thinking,
    without_directives,
    without_thinking,
)

__all__ = ["REPAIRS", "Repair", "thinking_switch"]

#: Least budget that a provider takes.
_LEAST_BUDGET = 1024
_INSTRUCTIONS = ("system", "developer")
_IMAGES = ("image", "image_url", "input_image")


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair, and the words of which a history has one if there is anything for it."""

    run: Callable[[ObjectText, Any, RewriteScope], Sequence[str]]
    words: tuple[bytes, ...] = ()


def thinking_switch(body: ObjectText, wire_format: WireFormat) -> bool | None:
    """Return whether a request switches thinking on or off, ``None`` when it does not say."""
    thinking = body.object("thinking")
    kind = thinking.text("type") if thinking is not None else None
    if kind is not None:
        return kind not in ("disabled", "between_tools")
    raw = body.raw("enable_thinking")
    if raw in (b"true", b"false"):
        return raw == b"true"
    if wire_format == "anthropic_messages":
        return None
    effort = _effort(body, wire_format)
    return None if effort is None else effort != "none"


def _effort(body: ObjectText, wire_format: WireFormat) -> str | None:
    """Return the effort that a request asks for."""
    holder: ObjectText | None = body
    *keys, last = FORMATS[wire_format].effort
    for key in keys:
        holder = holder.object(key) if holder is not None else None
    return holder.text(last) if holder is not None else None


# --- thinking --------------------------------------------------------------------------------


def _adaptive_to_budget(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Give thinking a budget; ``value`` has that of each effort, ``default`` for none."""
    thinking, messages = body.object("thinking"), body.array("messages")
    if thinking is None or thinking.text("type") != "adaptive":
        return ()
    room = _number(body.value("max_tokens")) // 2
    forced = body.object("tool_choice")
    is_forced = forced is not None and forced.text("type") in ("any", "tool")
    lacks = messages is not None and open_loop_lacks_thinking(messages)
    if 2 * room <= _LEAST_BUDGET or is_forced or lacks:
        return without_thinking(body)
    budgets = value if isinstance(value, Mapping) else {}
    wanted = budgets.get(_effort(body, scope.wire_format) or "", budgets.get("default"))
    budget = max(_LEAST_BUDGET, min(room, _number(wanted) or room))
    thinking.set("type", encode("enabled"))
    thinking.set("budget_tokens", encode(budget))
    return [f"gave thinking a budget of {budget} tokens in place of adaptive"]


def _budget_to_adaptive(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Let the model choose how much it thinks."""
    del value, scope
    thinking = body.object("thinking")
    if thinking is None or thinking.text("type") != "enabled":
        return ()
    thinking.set("type", encode("adaptive"))
    thinking.delete("budget_tokens")
    return ["made thinking adaptive in place of a budget"]


def _fit_budget(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Keep the budget of thinking between the least one and the limit of the answer.

    With the ``member`` of the ``header`` in ``value`` the limit is none.
    """
    told = value if isinstance(value, Mapping) else {}
    free = str(told.get("member")) in scope.headers.get(str(told.get("header")), "")
    thinking = body.object("thinking")
    budget = thinking.value("budget_tokens") if thinking is not None else None
    if thinking is None or not isinstance(budget, int) or thinking.text("type") != "enabled":
        return ()
    limit = _number(body.value("max_tokens"))
    if 0 < limit <= _LEAST_BUDGET:
        return without_thinking(body)
    fitting = max(budget, _LEAST_BUDGET)
    if limit and fitting >= limit and not free:
        fitting = max(_LEAST_BUDGET, limit // 2)
    if fitting == budget:
        return ()
    thinking.set("budget_tokens", encode(fitting))
    return [f"set the budget of thinking from {budget} to {fitting}"]


def _effort_to_native(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Say the effort by the key that the model knows (``value``), and drop the other ones.

    The caller's own use of that key stands.
    """
    del scope
    native = str(value)
    inner = body.object("reasoning")
    efforts = {
        "reasoning_effort": body.text("reasoning_effort"),
        "reasoning": inner.text("effort") if inner is not None else None,
    }
    others = [key for key in efforts if key != native and key in body]
    told = next((efforts[key] for key in others if efforts[key] is not None), None)
    changes: list[str] = []
    if told is not None and native not in body:
        said: Any = {
            "thinking": {"type": "disabled" if told == "none" else "enabled"},
            "enable_thinking": told != "none",
        }.get(native, told)
        body.set(native, encode(said))
        changes.append(f"set {native} for the effort {told}")
    return [*changes, *(f"removed {key}" for key in others if body.delete(key))]


def _reasoning_placeholder(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Give assistant messages the reasoning that the model demands; see the rule's ``value``.

    ``key`` is where, ``text`` what, and ``calls_only`` leaves out messages without tool calls.
    """
    del scope
    told = value if isinstance(value, Mapping) else {}
    key, text = str(told.get("key") or "reasoning_content"), str(told.get("text") or "")
    count = 0
    for _, message in _items(body, "messages"):
        if message.text("role") != "assistant" or (message.raw(key) or b"null") != b"null":
            continue
        if told.get("calls_only") and not message.array("tool_calls"):
            continue
        # Other providers have the same text under another name.
        other = next((message.text(k) for k in _NAMES if k != key and message.text(k)), None)
        message.set(key, encode(other or text))
        count += 1
    return [f"added {key} to {count} of the assistant's messages"] if count else ()


_NAMES = ("reasoning_content", "reasoning")


def _signature_placeholder(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Give the first call of each assistant message the signature that stands for none."""
    del scope
    count = 0
    for _, message in _items(body, "messages"):
        calls = message.array("tool_calls")
        call = calls.object(0) if calls is not None and len(calls) else None
        if call is None or message.text("role") != "assistant":
            continue
        extra = call.value("extra_content")
        extra = extra if isinstance(extra, dict) else {}
        vendor = extra.get("google")
        vendor = vendor if isinstance(vendor, dict) else {}
        if vendor.get("thought_signature"):
            continue
        signed = {**extra, "google": {**vendor, "thought_signature": str(value)}}
        call.set("extra_content", encode(signed))
        count += 1
    return [f"added a placeholder signature to calls: {count}"] if count else ()


def _drop_unsigned_thinking(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Remove thinking with an empty signature: a model made it that signs nothing."""
    del value, scope
    messages = body.array("messages")
    count = 0
    for index in reversed(range(len(messages) if messages is not None else 0)):
        message = messages.object(index) if messages is not None else None
        blocks = message.array("content") if message is not None else None
        if messages is None or blocks is None:
            continue
        unsigned = [
            number
            for number, block in blocks.objects()
            if block.text("type") == "thinking" and block.text("signature") == ""
        ]
        for number in reversed(unsigned):
            blocks.delete(number)
        count += len(unsigned)
        if unsigned and not len(blocks):
            messages.delete(index)
    if messages is None or not count:
        return ()
    thinking = body.object("thinking")
    budget = thinking is not None and thinking.text("type") == "enabled"
    lacks = budget and open_loop_lacks_thinking(messages)
    more = without_thinking(body) if lacks else []
    return [f"removed thinking without a signature: {count}", *more]


# --- roles and order -------------------------------------------------------------------------


def _developer_to_system(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Call the role of instructions by its older name."""
    del value
    count = 0
    for _, message in _items(body, FORMATS[scope.wire_format].history_key):
        if message.text("role") == "developer":
            message.set("role", encode("system"))
            count += 1
    return [f"made {count} developer messages system messages"] if count else ()


def _system_row_to_user(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Make instructions within the history words of the user, behind any results."""
    del value
    messages = body.array(FORMATS[scope.wire_format].history_key)
    rows = [] if messages is None else _system_rows(messages, scope.wire_format)
    lost: list[str] = []
    turned = 0
    for index in reversed(rows):
        message = messages.object(index) if messages is not None else None
        if messages is None or message is None:
            continue
        gone = without_directives(message, f"messages[{index}]")
        if gone and blank(message, "content"):
            messages.delete(index)
            lost[:0] = [*gone, f"removed the empty messages[{index}]"]
            continue
        lost[:0] = gone
        turned += 1
        message.set("role", encode("user"))
        raw, place = message.dump(), index + 1
        # Results come right behind their calls, whatever else the user says.
        while place < len(messages) and _is_results(messages, place):
            place += 1
        if place > index + 1:
            messages.insert(place, raw)
            messages.delete(index)
    told = f"turned system messages of the history into the user's: {turned}"
    return [told, *lost] if turned else lost


def _system_rows(messages: ArrayText, wire_format: WireFormat) -> list[int]:
    found = [i for i in range(len(messages)) if role_at(messages, i) in _INSTRUCTIONS]
    if wire_format == "anthropic_messages":
        return found
    # The other formats begin with them.
    return [index for place, index in enumerate(found) if index != place]


def _is_results(messages: ArrayText, index: int) -> bool:
    message = messages.object(index)
    if message is None:
        return False
    content = message.array("content")
    blocks = content.objects() if content is not None else ()
    answers = any(block.text("type") == "tool_result" for _, block in blocks)
    kind = message.text("type") or ""
    return answers or message.text("role") == "tool" or kind.endswith("_call_output")


def _merge_system(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Make one message of the instructions that a history begins with."""
    del value
    messages = body.array(FORMATS[scope.wire_format].history_key)
    count = 0
    while messages is not None and len(messages) > 1:
        first, second = messages.object(0), messages.object(1)
        if first is None or second is None:
            break
        if not {first.text("role"), second.text("role")} <= set(_INSTRUCTIONS):
            break
        joined = _joined(first.raw("content") or b'""', second.raw("content") or b'""')
        if joined is None:
            break
        first.set("content", joined)
        messages.delete(1)
        count += 1
    return [f"merged {count + 1} leading system messages"] if count else ()


def _joined(left: bytes, right: bytes) -> bytes | None:
    """Return two contents as one: texts with a blank line between, else their parts."""
    if left[:1] == right[:1] == b'"':
        return left[:-1] + rb"\n\n" + right[1:]
    parts = [
        b'[{"type":"text","text":' + raw + b"}]" if raw[:1] == b'"' else raw.strip()
        for raw in (left, right)
    ]
    if any(part[:1] != b"[" for part in parts):
        return None
    inner = [part[1:-1].strip() for part in parts]
    return b"[" + b",".join(filter(None, inner)) + b"]"


def _bridge_assistant(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Let the assistant say a word between tool results and the user."""
    del value, scope
    messages = body.array("messages")
    if messages is None:
        return ()
    places = [
        index
        for index in range(1, len(messages))
        if role_at(messages, index) in ("user", *_INSTRUCTIONS)
        and role_at(messages, index - 1) == "tool"
    ]
    for index in reversed(places):
        said = {"role": "assistant", "content": fixed_text("bridge")}
        messages.insert(index, encode(said))
    return [f"added {len(places)} assistant messages behind tool results"] if places else ()


def _pull_tool_results_up(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Put every result right behind its calls, and what was between them behind the results."""
    del value, scope
    messages = body.array("messages")
    moved, index = 0, 0
    while messages is not None and index < len(messages):
        wanted = _call_ids(messages.object(index))
        index += 1
        if not wanted:
            continue
        for place in range(index, len(messages)):
            message = messages.object(place)
            if message is None or message.text("tool_call_id") not in wanted:
                continue
            wanted.discard(message.text("tool_call_id") or "")
            if place > index:
                raw = messages.raw(place)
                messages.delete(place)
                messages.insert(index, raw)
                moved += 1
            index += 1
    return [f"moved {moved} tool results to their calls"] if moved else ()


def _call_ids(message: ObjectText | None) -> set[str]:
    calls = message.array("tool_calls") if message is not None else None
    found = calls.objects() if calls is not None else ()
    return {call_id for _, call in found if (call_id := call.text("id"))}


def _image_to_text(body: ObjectText, value: Any, scope: RewriteScope) -> Sequence[str]:
    """Put a text in the place of each image, within results too."""
    del value
    form = FORMATS[scope.wire_format]
    count = 0
    for _, item in _items(body, form.history_key):
        for key in ("content", "output"):
            pieces = item.array(key)
            count += _texts_for_images(pieces, form.text_type) if pieces is not None else 0
    return [f"put a text in the place of {count} images"] if count else ()


def _texts_for_images(pieces: ArrayText, text_type: str) -> int:
    count = 0
    for number, piece in list(pieces.objects()):
        inner = piece.array("content")
        if inner is not None:
            count += _texts_for_images(inner, text_type)
        elif piece.text("type") in _IMAGES:
            said = {"type": text_type, "text": fixed_text("image_left_out")}
            pieces.set(number, encode(said))
            count += 1
    return count


def _items(body: ObjectText, key: str) -> Iterator[tuple[int, ObjectText]]:
    items = body.array(key)
    return items.objects() if items is not None else iter(())


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


#: Every repair by its name in :data:`switchyard_core.models.schema.REPAIRS`.
REPAIRS: Mapping[str, Repair] = {
    "adaptive_to_budget": Repair(_adaptive_to_budget),
    "bridge_assistant": Repair(_bridge_assistant, (b'"tool"',)),
    "budget_to_adaptive": Repair(_budget_to_adaptive),
    "developer_to_system": Repair(_developer_to_system, (b'"developer"',)),
    "drop_unsigned_thinking": Repair(
        _drop_unsigned_thinking, (b'"signature":""', b'"signature": ""')
    ),
    "effort_to_native": Repair(_effort_to_native),
    "fit_budget": Repair(_fit_budget),
    "image_to_text": Repair(_image_to_text, (b"image",)),
    "merge_system": Repair(_merge_system),
    "pull_tool_results_up": Repair(_pull_tool_results_up, (b'"tool_call_id"',)),
    "reasoning_placeholder": Repair(_reasoning_placeholder, (b'"assistant"',)),
    "signature_placeholder": Repair(_signature_placeholder, (b'"tool_calls"',)),
    "system_row_to_user": Repair(_system_row_to_user, (b'"system"', b'"developer"')),
}
