"""Blocks of Messages as neutral parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from switchyard_core.jsonio.tree import ArrayText, ObjectText
from switchyard_core.wire.history import fixed_text
from switchyard_core.wire.messages.origin import COMPACTION
from switchyard_core.wire.neutral import (
    Call,
    Media,
    NeutralPart,
    Result,
    Thought,
    Told,
    ToolName,
    Words,
)
from switchyard_core.wire.pairing import odd_result, result_parts
from switchyard_core.wire.shapes import type_of

__all__ = ["BlockReader"]

#: The caller of a tool that the model itself calls.
_DIRECT = b'"direct"'
#: Blocks that hold nothing that anybody said.
_DIRECTIVES = ("tool_addition", "tool_removal", "fallback")


class BlockReader:
    """Reads the contents of messages, and tells what it leaves."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._opaque = 0
        self._cited = False

    def content(self, message: ObjectText, role: str, place: str) -> list[NeutralPart]:
        """Return what a message says."""
        raw, blocks = message.raw("content") or b"null", message.array("content")
        if blocks is not None:
            return list(self.parts(blocks, role, f"{place}.content"))
        if raw[:1] == b'"':
            text = message.text("content") or ""
            return [Words(text=text)] if text.strip() else []
        if raw != b"null":
            self._lose(f"{place}.content", raw)
        return []

    def parts(self, blocks: ArrayText, role: str, place: str) -> Iterator[NeutralPart]:
        """Yield what some blocks say; ``role`` may be ``tool`` for those of a result."""
        for number in range(len(blocks)):
            block, where = blocks.object(number), f"{place}[{number}]"
            if block is None:
                self._lose(where, blocks.raw(number))
            else:
                yield from self._block(block, role, where)

    def cache(self, holder: ObjectText) -> bytes:
        """Return the cache mark of a block or a tool, ``b""`` for none."""
        mark = holder.raw("cache_control") or b""
        return mark if mark[:1] == b"{" else b""

    def tell_reasoning(self) -> None:
        """Tell once what stays with the provider that made it."""
        if self._opaque:
            self._told.left_out.append(f"the opaque form of {self._opaque} thinking blocks")
        if self._cited:
            self._told.left_out.append("citations")

    def _lose(self, place: str, raw: bytes) -> None:
        self._told.lost.append(f"{place}, which has the wrong type ({type_of(raw)})")

    def _block(self, block: ObjectText, role: str, place: str) -> Iterator[NeutralPart]:
        kind = block.text("type") or ""
        self._cited = self._cited or _is_cited(block)
        if kind == "text":
            yield from self._words(block, "text", place)
        elif kind in ("thinking", "redacted_thinking") and role == "assistant":
            self._opaque += bool(block.text("signature") or block.text("data"))
            text = block.text("thinking") or ""
            if text.strip():
                yield Thought(text=text)
        elif kind == "tool_use" and role == "assistant":
            yield self._call(block, place)
        elif kind == "tool_result" and role == "user":
            yield self._result(block, place)
        elif kind == "image" and role in ("user", "tool"):
            yield from self._image(block, place)
        elif kind == "document" and role in ("user", "tool"):
            yield from self._document(block, place)
        elif kind == "search_result" and role in ("user", "tool"):
            yield from self._search_result(block, place)
        elif kind == "tool_reference" and role == "tool" and block.text("tool_name"):
            self._told.changed.append("wrote the tools that a search has found as text")
            found = fixed_text("found_tool").format(tool=block.text("tool_name"))
            yield Words(text=found, cache=self.cache(block))
        elif kind == COMPACTION and (block.text("content") or "").strip():
            yield from self._words(block, "content", place)
        elif kind in _DIRECTIVES:
            self._told.left_out.append(f"the {kind} {place}")
        else:
            self._told.lost.append(f"{kind or 'a block without type'} {place}")

    def _words(self, block: ObjectText, key: str, place: str) -> Iterator[Words]:
        text = block.text(key)
        if text is None:
            self._lose(f"{place}.{key}", block.raw(key) or b"null")
        elif text.strip():
            yield Words(text=text, cache=self.cache(block))

    def _call(self, block: ObjectText, place: str) -> Call:
        raw = block.raw("input") or b"null"
        caller = block.raw("caller") or b"null"
        if caller != b"null" and _DIRECT not in caller:
            self._told.left_out.append(f"the caller of {place}")
        return Call(
            id=block.text("id") or "",
            tool=ToolName(name=block.text("name") or ""),
            arguments="" if raw == b"null" else raw.decode("utf-8", "replace"),
            cache=self.cache(block),
        )

    def _result(self, block: ObjectText, place: str) -> Result:
        raw, lost = block.raw("content") or b"null", len(self._told.lost)
        parts: Iterable[NeutralPart] = odd_result(raw)
        if not parts:
            parts = self.content(block, "tool", place)
        return Result(
            call_id=block.text("tool_use_id") or "",
            parts=result_parts(parts, lost=len(self._told.lost) > lost),
            failed=block.raw("is_error") == b"true",
            cache=self.cache(block),
        )

    # --- images and files ------------------------------------------------------------------------

    def _image(self, block: ObjectText, place: str) -> Iterator[Media]:
        url = _url(block.object("source"))
        if url:
            yield Media(kind="image", url=url, cache=self.cache(block))
        else:
            self._told.lost.append(f"the image {place}")

    def _document(self, block: ObjectText, place: str) -> Iterator[Words | Media]:
        source, title = block.object("source"), block.text("title") or ""
        kind = source.text("type") if source is not None else None
        if source is not None and kind == "content":
            parts = self.content(source, "tool", f"{place}.source")
            yield from _titled(title, block.text("context") or "")
            yield from (part for part in parts if isinstance(part, Words | Media))
            return
        if source is not None and kind == "text":
            yield from _titled(title, block.text("context") or "")
            text = source.text("data") or ""
            if text.strip():
                yield Words(text=text, cache=self.cache(block))
            return
        url = _url(source)
        if not url:
            self._told.lost.append(f"the document {place}")
            return
        if block.text("context"):
            self._told.left_out.append(f"the context of the document {place}")
        yield Media(kind="file", url=url, name=title, cache=self.cache(block))

    def _search_result(self, block: ObjectText, place: str) -> Iterator[Words | Media]:
        parts = self.content(block, "tool", place)
        self._told.changed.append(f"turned the search_result {place} into text")
        yield from _titled(block.text("title") or "", block.text("source") or "")
        yield from (part for part in parts if isinstance(part, Words | Media))


def _titled(*lines: str) -> Iterator[Words]:
    said = "\n".join(line for line in lines if line.strip())
    if said:
        yield Words(text=said)


def _url(source: ObjectText | None) -> str:
    """Return the address of what a source holds, ``""`` when only its provider has it."""
    if source is None:
        return ""
    kind, data = source.text("type"), source.text("data") or ""
    media = source.text("media_type") or ""
    if kind == "base64" and media and data:
        return f"data:{media};base64,{data}"
    return (source.text("url") or "") if kind == "url" else ""


def _is_cited(block: ObjectText) -> bool:
    """Return whether a block has citations, or asks for some."""
    return (block.raw("citations") or b"null") not in (
        b"null",
        b"[]",
        b"{}",
        b'{"enabled":false}',
        b'{"enabled": false}',
    )
