"""What a wire format is: the one protocol for everything outside of this room."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import msgspec

from switchyard_core.answering import ModelCall, ModelReply, ModelUsage, ToolOutput, ToolSpec
from switchyard_core.conversation import Conversation, Image, Role, UserMessage
from switchyard_core.declarations import Endpoint, WireFormat
from switchyard_core.errors import BodyError, RequestError
from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode, loads, object_of
from switchyard_core.wire.answers import Event, Frame, PartWriter
from switchyard_core.wire.callers import instruction_text, said_by_user
from switchyard_core.wire.history import (
    BodyView,
    fixed_text,
    lacks_history,
)
from switchyard_core.wire.neutral import AskedTool, Facts, NeutralRequest
from switchyard_core.wire.replies import ShapeError, ToldError, an_array, refuse_error
from switchyard_core.wire.retelling import AnswerReader

__all__ = ["EventKind", "Format", "Verbatim", "assistant_item", "encode_items"]

#: Which model an answer names.
AnswerModel = Literal["requested", "provider"]
#: What an event of a stream is: before the content, content, or the end.
EventKind = Literal["head", "content", "end"]

#: Ways to make a target answer by a schema.
StructuredOutput = Literal["json_schema", "forced_tool", "prompt"]


class Verbatim(dict[str, Any]):
    """A JSON object to read as a tree, with the bytes that are written.

    Numbers such as ``1.10``, escapes and key order survive, which a tree would lose. A change in
    place is not written: make a ``dict`` of it first.
    """

    def __init__(self, raw: bytes) -> None:
        super().__init__(loads(raw))
        self.raw = raw


def encode_items(items: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the JSON array of some items; verbatim ones keep their bytes."""
    raws = (item.raw if isinstance(item, Verbatim) else encode(dict(item)) for item in items)
    return b"[" + b",".join(raws) + b"]"


def assistant_item(text: str) -> dict[str, Any]:
    """Return text of the assistant, the same in every wire format."""
    return {"role": "assistant", "content": text}


class Format(ABC):
    """One wire format: all that the project knows of it. A wrong body is a ``BodyError``."""

    name: ClassVar[WireFormat]
    #: Path of each endpoint that the format has, without a version.
    paths: ClassVar[Mapping[Endpoint, str]]
    #: Keys that a body may have whose tokens are counted, where the format has such an endpoint.
    counted_keys: ClassVar[frozenset[str]] = frozenset()
    #: Makes the patchable view of a body, and the writer of an answer.
    view: ClassVar[type[BodyView]]
    writer: ClassVar[type[PartWriter]]
    #: Reads an answer, to be told in another format.
    reader: ClassVar[type[AnswerReader]]

    #: Whether a base URL with a path of its own ends before the version: the format's SDK adds it.
    version_follows_base: ClassVar[bool] = False

    #: The body's key that holds the history.
    history_key: ClassVar[str] = "messages"
    #: The body's key for instructions that are not in the history, ``""`` for none.
    instructions_key: ClassVar[str] = ""
    #: The body's keys by which a request may continue an earlier response.
    continuation_keys: ClassVar[tuple[str, ...]] = ()
    #: What the bytes of a body have in them if it holds context that only one provider can read.
    context_mark: ClassVar[re.Pattern[bytes]] = re.compile(rb"(?!)")
    #: The body's keys that offer tools.
    tool_keys: ClassVar[tuple[str, ...]] = ("tools",)
    #: The role that each word of the format means.
    roles: ClassVar[Mapping[str, Role]]
    #: Ids of tool calls that the provider accepts.
    legal_id: ClassVar[re.Pattern[str]]
    #: Keys to the reasoning effort, from the outermost.
    effort: ClassVar[tuple[str, ...]]

    #: Whether tools may have namespaces and take free text; longest name of a tool.
    has_namespaces: ClassVar[bool] = False
    has_custom_tools: ClassVar[bool] = False
    longest_name: ClassVar[int] = 64

    #: Key of the limit of an answer, and whether the provider demands it.
    limit_key: ClassVar[str]
    #: Older keys of that limit, which providers still take.
    old_limit_keys: ClassVar[tuple[str, ...]] = ()
    needs_limit: ClassVar[bool] = False
    #: The limit where the provider demands one and nobody sets one.
    usual_limit: ClassVar[int] = 4096
    #: Keys of the neutral sampling settings, and the highest temperature, if there is one.
    sampling: ClassVar[Mapping[str, str]]
    max_temperature: ClassVar[float | None] = None
    #: Type of a text part in a user message.
    text_type: ClassVar[str] = "text"

    #: What a stream holds when it is complete, and when it reports an error. Quotes and line
    #: breaks inside JSON strings are escaped, so these can only be the events' own.
    end_mark: ClassVar[re.Pattern[bytes]]
    error_mark: ClassVar[re.Pattern[bytes]]
    #: Names of events that come before the first content of a stream.
    head_events: ClassVar[frozenset[str]] = frozenset()
    #: The key of an answer that holds what the model said, and the key of a stream's event that
    #: holds the answer, ``""`` for none.
    said_key: ClassVar[str]
    answer_key: ClassVar[str] = ""
    #: Which model an answer names unless the route says: the one that was asked for, or the
    #: provider's own.
    answer_model: ClassVar[AnswerModel] = "provider"
    #: Whether the last event of a stream repeats the whole answer.
    ends_with_whole_answer: ClassVar[bool] = False

    #: A caller's headers that belong to the format, and those that a provider demands.
    headers: ClassVar[tuple[str, ...]] = ()
    needed_headers: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: The header in which providers and callers expect the id of a request.
    request_id_header: ClassVar[str] = "x-request-id"
    #: Status by which a provider says that it is overloaded.
    overloaded: ClassVar[int] = 503
    #: How a provider indents whole bodies, ``None`` for not at all.
    indent: ClassVar[int | None] = 2

    @property
    def limit_keys(self) -> tuple[str, ...]:
        """Every key that limits an answer."""
        return (self.limit_key, *self.old_limit_keys)

    # --- reading a request -----------------------------------------------------------------

    @abstractmethod
    def read(self, fields: ObjectText) -> Conversation:
        """Return the neutral view of the history."""

    def resembles(self, fields: ObjectText, headers: Mapping[str, str]) -> bool:
        """Return whether a body with these headers looks like this format."""
        return self.history_key in fields

    def is_plain(self, fields: ObjectText) -> bool:
        """Return whether a body that resembles the format may as well be of a similar one."""
        del fields
        return False

    @abstractmethod
    def said(self, fields: ObjectText) -> list[tuple[Any, msgspec.Raw | bytes]]:
        """Return role and JSON of the content of every message, in order."""

    def history(self, fields: ObjectText) -> bytes:
        """Return the bytes of the history, ``b""`` where the format admits none."""
        raw = fields.raw(self.history_key)
        if raw is not None and raw[:1] == b"[":
            return raw
        raise self.wrong_history(raw)

    def wrong_history(self, raw: bytes | None, kinds: str = "an array") -> BodyError:
        """Return the error for a history that is missing or of the wrong kind."""
        what = "is missing" if raw is None else f"must be {kinds}"
        key = self.history_key
        return BodyError(message=f"`{key}` {what}", code="invalid_type", param=key)

    def continuation(self, fields: ObjectText) -> tuple[str, ...]:
        """Return the keys by which the request continues an earlier response."""
        del fields
        return ()

    def offers_tools(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return whether the request offers tools."""
        del conversation
        return any(fields.array(key) for key in self.tool_keys)

    @abstractmethod
    def offered_tools(self, fields: ObjectText) -> tuple[str, ...]:
        """Return the names of the tools that the request offers, ``namespace.name`` in one."""

    def misses_history(self, fields: ObjectText, conversation: Conversation) -> bool:
        """Return whether the request continues a history that it does not hold."""
        return lacks_history(fields.raw(self.history_key) or b"", conversation)

    def asks_for_history(self, keys: Sequence[str]) -> Mapping[str, Any]:
        """Return members of an error that make clients send the whole history again."""
        del keys
        return {}

    def hidden_history(self, fields: ObjectText) -> tuple[str, ...]:
        """Return the places where a part of the history is that only its provider can read."""
        del fields
        return ()

    def user_message(self, fields: ObjectText) -> UserMessage:
        """Return the last message of the user, an empty one when there is none."""
        for role, content in reversed(self.said(fields)):
            if role == "user" and not self.is_only_results(content):
                return said_by_user(content)
        return UserMessage(text="")

    def is_only_results(self, content: msgspec.Raw | bytes) -> bool:
        """Return whether a user message holds tool results and nothing from the user."""
        del content
        return False

    def instructions(self, fields: ObjectText) -> str:
        """Return the text of the caller's instructions, joined by a blank line."""
        apart = fields.raw(self.instructions_key) if self.instructions_key else None
        inside = [
            content
            for role, content in self.said(fields)
            if isinstance(role, str) and self.roles.get(role) == "system"
        ]
        return instruction_text([apart or b"", *inside])

    def includes_usage(self, fields: ObjectText) -> bool:
        """Return whether a stream that answers the request states its tokens."""
        del fields
        return True

    # --- a request for another format, and from one --------------------------------------------

    @abstractmethod
    def neutral(self, fields: ObjectText) -> NeutralRequest:
        """Return what a request says, whatever its format; the caller's ids and names stay."""

    def asked_tools(self, fields: ObjectText) -> tuple[AskedTool, ...]:
        """Return the tools that a request offers and its caller runs; the history is not read."""
        offers = {key: raw for key in self.tool_keys if (raw := fields.raw(key)) is not None}
        return self.neutral(ObjectText(object_of({**offers, self.history_key: b"[]"}))).tools

    @abstractmethod
    def write(self, request: NeutralRequest, facts: Facts) -> bytes:
        """Return the body that says the same in this format, ``model`` first.

        Whatever this format has no place for is named in ``request.told``. What it returns is
        legal: pairs are in their places, roles in their order, nothing is empty. Names and ids
        are those of :class:`~switchyard_core.wire.naming.ToolNames` and ``id_at_target``.
        """

    # --- a request of our own ----------------------------------------------------------------

    def compose(
        self, call: ModelCall, model: str, structured_output: StructuredOutput = "json_schema"
    ) -> bytes:
        """Return the body of a call that is not streamed.

        ``structured_output`` is how the target follows ``call.schema``. For ``forced_tool``, give
        :meth:`read_reply` the schema's name.
        """
        schema = dict(call.schema or {})
        way = structured_output if call.schema is not None else ""
        instructions, tools = call.instructions, list(call.tools)
        if way == "prompt":
            asked = f"{fixed_text('schema_prompt').strip()}\n\n{encode(schema).decode()}"
            instructions = "\n\n".join(filter(None, (instructions, asked)))
        elif way == "forced_tool":
            told = fixed_text("schema_tool")
            tools.append(ToolSpec(name=call.schema_name, description=told, parameters=schema))
        items = call.items or (self.user_message_item(call.text, call.images),)
        body = {"model": model, **self.opening(instructions, items), **self.own_fields(call)}
        if way == "json_schema":
            body |= self.schema_fields(call.schema_name, schema)
        if tools:
            body["tools"] = [
                self.tool(tool.name, tool.description, dict(tool.parameters))
                if isinstance(tool, ToolSpec)
                else dict(tool)
                for tool in tools
            ]
        if way == "forced_tool":
            body["tool_choice"] = self.tool_choice(call.schema_name)
        limit = call.max_output_tokens
        if limit is not None or self.needs_limit:
            body[self.limit_key] = self.usual_limit if limit is None else limit
        body |= self._sampling(call)
        members = (
            encode(key) + b":" + (encode_items(value) if key == self.history_key else encode(value))
            for key, value in body.items()
        )
        return b"{" + b",".join(members) + b"}"

    def _sampling(self, call: ModelCall) -> dict[str, Any]:
        settings = dict(call.sampling)
        if call.temperature is not None:
            settings["temperature"] = call.temperature
        stop = settings.get("stop")
        if stop is not None:
            settings["stop"] = [stop] if isinstance(stop, str) else list(stop)
        warmth, most = settings.get("temperature"), self.max_temperature
        if warmth is not None and most is not None and warmth > most:
            # Other formats go further, and a caller of theirs may use that.
            settings["temperature"] = most
        return {
            key: settings[name]
            for name, key in self.sampling.items()
            if settings.get(name) is not None
        }

    def opening(self, instructions: str, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the members of a body that hold instructions and history."""
        apart = {self.instructions_key: instructions} if instructions else {}
        return {**apart, self.history_key: items}

    def own_fields(self, call: ModelCall) -> dict[str, Any]:
        """Return the members that only this format needs."""
        del call
        return {}

    @abstractmethod
    def schema_fields(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of a body that ask for a schema in the format's own way."""

    @abstractmethod
    def tool(self, name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool as a request offers it."""

    @abstractmethod
    def tool_choice(self, name: str) -> dict[str, Any]:
        """Return the value of ``tool_choice`` that makes a model call one tool."""

    def user_message_item(self, text: str, images: Sequence[Image] = ()) -> dict[str, Any]:
        """Return a message of the user, its images behind its text."""
        if not images:
            return {"role": "user", "content": text}
        parts: list[dict[str, Any]] = [{"type": self.text_type, "text": text}] if text else []
        return {"role": "user", "content": [*parts, *map(self.image, images)]}

    @abstractmethod
    def image(self, image: Image) -> dict[str, Any]:
        """Return an image as a part of a user message."""

    @abstractmethod
    def result_items(self, outputs: Sequence[ToolOutput]) -> tuple[dict[str, Any], ...]:
        """Return the results of tool calls as items of a history."""

    def refuses_item(self, item: Mapping[str, Any]) -> bool:
        """Return whether a provider refuses an item of the assistant as empty."""
        return not item.get("content")

    # --- reading an answer -------------------------------------------------------------------

    def read_reply(self, body: bytes, structured: str | None = None) -> ModelReply:
        """Return the reply in a whole answer; a ``ValueError`` gives the reason when it is not one.

        ``structured`` is the schema's name where it was asked for with ``forced_tool``: the
        arguments of that tool become the reply's text and an assistant message, because a call
        without a result cannot be sent back.
        """
        try:
            fields = ObjectText(body)
            tree = loads(body)
            refuse_error(tree)
            reply = self.read_answer(tree, fields)
        except (JsonTextError, ShapeError) as error:
            msg = f"not an answer of {self.name}: {error}"
            raise ValueError(msg) from None
        call = next((call for call in reply.calls if call.name == structured), None)
        if structured is None or call is None:
            return reply
        text = call.arguments
        return replace(reply, text=text, calls=(), items=(assistant_item(text),))

    @abstractmethod
    def read_answer(self, tree: Mapping[str, Any], fields: ObjectText) -> ModelReply:
        """Return what an answer says; a ``ShapeError`` when it has another shape."""

    def event_kind(self, name: str, tree: Mapping[str, Any]) -> EventKind:
        """Return what an event of a stream says; a ``ShapeError`` when it says that it failed."""
        del name, tree
        return "content"

    def check_answer(self, tree: Mapping[str, Any]) -> None:
        """Raise a ``ShapeError`` when a whole answer says that it failed, or is none."""
        an_array(tree, self.said_key)

    def says_nothing(self, tree: Mapping[str, Any]) -> bool:
        """Return whether a whole answer holds nothing that a model said."""
        return not tree.get(self.said_key)

    def with_model(self, data: bytes, model: str) -> bytes | None:
        """Return an answer, or an event of one, with another model; ``None`` if it names none."""
        try:
            fields = ObjectText(data)
            inner = fields.object(self.answer_key) if self.answer_key else None
        except JsonTextError:
            return None
        node = next((n for n in (inner, fields) if n is not None and n.text("model")), None)
        if node is None:
            return None
        node.set("model", encode(model))
        return fields.dump()

    @abstractmethod
    def usage(self, told: Mapping[str, Any]) -> ModelUsage:
        """Return the tokens of a ``usage`` object."""

    # --- errors, and the rest of a provider's words ---------------------------------------------

    @abstractmethod
    def error_body(self, error: RequestError, request_id: str) -> bytes:
        """Return an error of ours, with its ``details``, as the JSON body of this format."""

    @abstractmethod
    def error_event(self, error: RequestError, request_id: str, last: bytes) -> bytes:
        """Return an error of ours as the event that ends a stream; ``last`` ends the bytes sent."""

    @abstractmethod
    def provider_error(self, status: int, message: str, request_id: str) -> dict[str, Any]:
        """Return the body of an error as the provider writes it."""

    def overflow(self, told: ToldError) -> ToldError:
        """Return an error that a request is too long, as the format's own clients look for it."""
        return replace(told, kind="invalid_request_error", code="context_length_exceeded")

    def translated_error(self, status: int, told: ToldError, request_id: str) -> dict[str, Any]:
        """Return the body of an error that a provider of another format wrote."""
        body = self.provider_error(status, told.message, request_id)
        known = {"type": told.kind, "code": told.code, "param": told.param}
        error = body.get("error")
        if isinstance(error, dict):
            error.update({key: value for key, value in known.items() if value})
        return body

    @abstractmethod
    def provider_error_event(self, status: int, message: str, number: int) -> Event:
        """Return the event by which a provider ends its stream at place ``number``."""

    def credential(self, key: str) -> tuple[str, str]:
        """Return the header that authenticates a call."""
        return "authorization", f"Bearer {key}"

    def token_count(self, tokens: int) -> dict[str, Any]:
        """Return the answer to a request for a token count."""
        return {"input_tokens": tokens}

    def compaction(self, frame: Frame, opaque: str, usage: ModelUsage) -> dict[str, Any]:
        """Return the answer to a request for a compaction; for formats that have the endpoint."""
        msg = f"{self.name} has no endpoint for compactions"
        raise NotImplementedError(msg)
