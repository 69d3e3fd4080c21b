"""A Messages request as a neutral one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from switchyard_core.clients import is_for_provider
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.wire.messages.blocks import BlockReader
from switchyard_core.wire.neutral import (
    AskedTool,
    Choice,
    NeutralPart,
    NeutralRequest,
    Result,
    Schema,
    Told,
    ToolName,
    Turn,
    Words,
    one_of_each,
)
from switchyard_core.wire.shapes import type_of

__all__ = ["read_request"]

#: The effort that a budget of thinking stands for: the least tokens of each word, the highest
#: first. Source: the defaults by which clients make budgets of efforts, pi (minimal 1024, low 2048,
#: medium 8192, high 16384) and opencode (high 16000).
_EFFORTS = ((16000, "high"), (4096, "medium"), (2048, "low"), (0, "minimal"))
#: Words of ``service_tier`` in OpenAI's; other words are nobody else's.
_TIERS: Mapping[str, str] = {"auto": "auto", "standard_only": "default"}
#: What providers of other formats take at most; that of Claude Code has some 150 characters.
#: Sources: API reference of OpenAI (`safety_identifier`); github.com/looplj/axonhub/issues/1669.
_LONGEST_USER = 64
#: Keys that a request has a place of its own for.
_READ = frozenset(
    {
        *("model", "system", "messages", "tools", "tool_choice", "max_tokens", "stop_sequences"),
        *("stream", "metadata", "service_tier", "temperature", "top_p", "top_k"),
        *("output_config", "output_format", "thinking", "context_management"),
    }
)
_NOTHING = (b"", b"[]", b"{}")
#: Keys whose loss is one of content.
_LOST = ("container", "mcp_servers", "thread")
#: Keys of a tool that say the same everywhere, or nothing.
_OF_TOOL = frozenset({"type", "name", "description", "input_schema", "strict", "cache_control"})

_Role = Literal["system", "user", "assistant", "tool"]
_ROLES: Mapping[str, _Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def read_request(fields: ObjectText) -> NeutralRequest:
    """Return what a request says; the body stays as it is."""
    return _Reader(fields).read()


class _Reader:
    def __init__(self, fields: ObjectText) -> None:
        self._fields = fields
        self._told = Told()
        self._blocks = BlockReader(self._told)

    def read(self) -> NeutralRequest:
        fields, told = self._fields, self._told
        tools = one_of_each(self._tools(), told)
        choice, parallel = self._choice(tools)
        request = NeutralRequest(
            model=fields.text("model") or "",
            instructions=self._instructions(),
            turns=self._turns(),
            tools=tools,
            choice=choice,
            parallel=parallel,
            schema=self._schema(),
            effort=self._effort(),
            limit=self._limit(),
            stop=self._stop(),
            stream={b"true": True, b"false": False}.get(self._raw("stream", "boolean")),
            settings=dict(self._settings()),
            told=told,
        )
        self._context_edits()
        for key in _keys(fields):
            if key not in _READ and self._raw(key) not in _NOTHING:
                (told.lost if key in _LOST else told.left_out).append(f"`{key}`")
        self._blocks.tell_reasoning()
        return request

    def _raw(self, key: str, *wanted: str) -> bytes:
        """Return the JSON of a member, ``b""`` for none; one of a wrong type is told."""
        raw = self._fields.raw(key)
        if raw is None or raw == b"null":
            return b""
        if wanted and type_of(raw) not in wanted:
            self._wrong(f"`{key}`", raw)
            return b""
        return raw

    def _wrong(self, place: str, raw: bytes) -> None:
        self._told.left_out.append(f"{place}, which has the wrong type ({type_of(raw)})")

    # --- what is said ----------------------------------------------------------------------------

    def _instructions(self) -> tuple[Words, ...]:
        raw = self._raw("system", "string", "array")
        if raw[:1] == b'"':
            text = self._fields.text("system") or ""
            return (Words(text=text),) if text.strip() else ()
        blocks = self._fields.array("system") if raw else None
        parts = self._blocks.parts(blocks, "system", "system") if blocks is not None else ()
        words = [part for part in parts if isinstance(part, Words)]
        meant = tuple(part for part in words if not is_for_provider(part.text))
        if len(meant) < len(words):
            self._told.left_out.append("the instruction to the provider of the client")
        return meant

    def _turns(self) -> tuple[Turn, ...]:
        made = _Turns()
        messages = self._fields.array("messages")
        for index in range(len(messages) if messages is not None else 0):
            place = f"messages[{index}]"
            message = messages.object(index) if messages is not None else None
            role = _ROLES.get((message.text("role") if message is not None else None) or "")
            if message is None or role is None:
                self._told.lost.append(f"{place}, which has no role of Messages")
                continue
            made.add(role, self._blocks.content(message, role, place))
            if role == "system":
                self._directives(message, place)
        return made.turns()

    def _directives(self, message: ObjectText, place: str) -> None:
        for key in _keys(message):
            if key not in ("role", "content", "cache_control"):
                self._told.left_out.append(f"{key} of {place}")

    # --- tools -----------------------------------------------------------------------------------

    def _tools(self) -> Iterator[AskedTool]:
        tools = self._fields.array("tools") if self._raw("tools", "array") else None
        loose: dict[str, int] = {}
        for index in range(len(tools) if tools is not None else 0):
            tool = tools.object(index) if tools is not None else None
            name = tool.text("name") if tool is not None else None
            kind = (tool.text("type") if tool is not None else None) or "custom"
            if tool is None or not name or kind != "custom" or _is_called_by_code_only(tool):
                what = f"tool `{name}`" if name else f"tools[{index}]"
                self._told.lost.append(f"{what} ({kind})" if kind != "custom" else what)
                continue
            for key in _keys(tool):
                if key not in _OF_TOOL and tool.raw(key) not in (b"null", b"false"):
                    loose[key] = loose.get(key, 0) + 1
            yield self._tool(tool, name)
        for key, count in loose.items():
            self._told.left_out.append(
                f"{key} of {count} tools" if count > 1 else f"{key} of a tool"
            )

    def _tool(self, tool: ObjectText, name: str) -> AskedTool:
        schema = tool.raw("input_schema") or b""
        return AskedTool(
            tool=ToolName(name=name),
            description=tool.text("description") or "",
            # One of another type says nothing of the arguments.
            parameters=schema if schema[:1] == b"{" else b"",
            strict={b"true": True, b"false": False}.get(tool.raw("strict") or b""),
            cache=self._blocks.cache(tool),
        )

    def _choice(self, tools: tuple[AskedTool, ...]) -> tuple[Choice | None, bool | None]:
        if not self._raw("tool_choice", "object"):
            return None, None
        chosen = self._fields.object("tool_choice")
        kind = (chosen.text("type") if chosen is not None else None) or ""
        alone = chosen is not None and chosen.raw("disable_parallel_tool_use") == b"true"
        parallel = False if alone else None
        if kind in ("auto", "none"):
            return Choice(mode="auto" if kind == "auto" else "none"), parallel
        if kind == "any" and tools:
            return Choice(mode="required"), parallel
        name = (chosen.text("name") if chosen is not None else None) or ""
        if kind == "tool" and any(each.tool.name == name for each in tools):
            return Choice(mode="required", allowed=(ToolName(name=name),)), parallel
        # A choice that is lost leaves none of the other tools, never all of them.
        self._told.lost.append(f"the choice of the tool `{name}`" if name else "`tool_choice`")
        return (Choice(mode="none") if tools else None), parallel

    # --- settings --------------------------------------------------------------------------------

    def _schema(self) -> Schema | None:
        config = self._fields.object("output_config") if self._raw("output_config") else None
        form = config.object("format") if config is not None else None
        form = form or (
            self._fields.object("output_format") if self._raw("output_format") else None
        )
        if form is None:
            return None
        schema = form.raw("schema") or b""
        if form.text("type") != "json_schema" or schema[:1] != b"{":
            self._told.left_out.append("the format of the answer, which is not a JSON schema")
            return None
        return Schema(schema=schema)

    def _effort(self) -> str:
        config = (
            self._fields.object("output_config") if self._raw("output_config", "object") else None
        )
        for key in _keys(config):
            if key not in ("effort", "format"):
                self._told.left_out.append(f"output_config.{key}")
        asked = (config.text("effort") if config is not None else None) or ""
        thinking = self._fields.object("thinking") if self._raw("thinking", "object") else None
        if thinking is None:
            return asked
        for key in _keys(thinking):
            if key not in ("type", "budget_tokens"):
                self._told.left_out.append(f"thinking.{key}")
        if thinking.text("type") in ("disabled", "between_tools"):
            return "none"
        budget = thinking.value("budget_tokens")
        if asked or thinking.text("type") != "enabled" or not isinstance(budget, int | float):
            return asked
        word = next((word for least, word in _EFFORTS if budget >= least), _EFFORTS[-1][1])
        self._told.changed.append(f"made the effort {word} of a thinking budget of {budget} tokens")
        return word

    def _limit(self) -> int | None:
        raw = self._raw("max_tokens", "number")
        if not raw:
            return None
        if raw.isdigit() and len(raw) < 16 and int(raw):
            return int(raw)
        self._told.left_out.append("`max_tokens`, which is not a whole number above 0")
        return None

    def _stop(self) -> tuple[str, ...]:
        given = self._fields.value("stop_sequences") if self._raw("stop_sequences", "array") else []
        texts = tuple(text for text in given if isinstance(text, str))
        if len(texts) < len(given):
            self._told.left_out.append("`stop_sequences` that are not texts")
        return texts

    def _settings(self) -> Iterator[tuple[str, bytes]]:
        for key in ("temperature", "top_p", "top_k"):
            raw = self._raw(key, "number")
            if raw:
                yield key, raw
        metadata = self._fields.object("metadata") if self._raw("metadata", "object") else None
        for key in _keys(metadata):
            raw = (metadata.raw(key) if metadata is not None else None) or b""
            if key == "user_id" and raw[:1] == b'"' and len(raw) <= _LONGEST_USER + 2:
                yield "user", raw
            elif key == "user_id" and raw[:1] == b'"':
                self._told.left_out.append(
                    f"metadata.user_id, longer than {_LONGEST_USER} characters"
                )
            elif raw != b"null":
                self._told.left_out.append(f"metadata.{key}")
        tier = self._fields.text("service_tier") if self._raw("service_tier", "string") else None
        if tier is not None and tier in _TIERS:
            yield "service_tier", encode(_TIERS[tier])
        elif tier is not None:
            self._told.left_out.append(f"the service tier `{tier}`")

    def _context_edits(self) -> None:
        """Tell the edits of the context; those of thinking mean nothing where there is none."""
        if not self._raw("context_management", "object"):
            return
        management = self._fields.object("context_management")
        for key in _keys(management):
            edits = management.array(key) if management is not None else None
            if key != "edits" or edits is None:
                self._told.left_out.append(f"context_management.{key}")
                continue
            for index in range(len(edits)):
                edit = edits.object(index)
                kind = (edit.text("type") if edit is not None else None) or f"edits[{index}]"
                if not kind.startswith("clear_thinking_"):
                    self._told.left_out.append(f"the context edit {kind}")


class _Turns:
    """Makes turns of messages: of the user's neighbours the results, then the rest."""

    def __init__(self) -> None:
        self._made: list[tuple[_Role, list[NeutralPart], list[NeutralPart]]] = []

    def add(self, role: _Role, parts: list[NeutralPart]) -> None:
        last = self._made[-1] if self._made else None
        if last is None or last[0] != role or role == "system":
            last = (role, [], [])
            self._made.append(last)
        for part in parts:
            (last[1] if isinstance(part, Result) else last[2]).append(part)

    def turns(self) -> tuple[Turn, ...]:
        found: list[Turn] = []
        for role, results, others in self._made:
            self._put(found, "tool", results)
            self._put(found, role, others)
        return tuple(found)

    def _put(self, found: list[Turn], role: _Role, parts: list[NeutralPart]) -> None:
        last = found[-1] if found else None
        if parts and last is not None and last.role == role != "system":
            found[-1] = Turn(role=role, parts=(*last.parts, *parts))
        elif parts:
            found.append(Turn(role=role, parts=tuple(parts)))


def _is_called_by_code_only(tool: ObjectText) -> bool:
    """Return whether only code at the provider may call a tool."""
    callers = tool.array("allowed_callers")
    return callers is not None and len(callers) > 0 and b'"direct"' not in callers.dump()


def _keys(node: ObjectText | None) -> tuple[str, ...]:
    """Return the keys of an object, each once."""
    return tuple(dict.fromkeys(node.keys())) if node is not None else ()
