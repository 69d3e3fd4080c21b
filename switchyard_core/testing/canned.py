"""Canned replies of models: what a router that asks is told in a test, and what it asked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, replace

from switchyard_core.asking import AskError, ModelCall, ModelReply
from switchyard_core.engine.asking import Asker
from switchyard_core.request import Request
from switchyard_core.scripted import Player, Script, Scripted, Turn
from switchyard_core.scripted.script import Call as ScriptedCall
from switchyard_core.upstream.base import Outgoing
from switchyard_core.wire import format_of

__all__ = ["AskedCall", "CannedAnswers", "CannedReply", "Questions", "complete_reply"]

#: A reply to play: a text that ends well, a whole reply, or the error of a model that fails.
CannedReply = str | ModelReply | AskError
#: Replies by target, or a function of target and call, which may be asynchronous.
CannedAnswers = (
    Mapping[str, CannedReply | Sequence[CannedReply]]
    | Callable[[str, ModelCall], CannedReply | Awaitable[CannedReply]]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call that a router asked for.

    Args:
        target: Name of the target.
        call: What it was asked, the same for every wire format.
        outgoing: What is sent for it, in the target's own wire format, without a credential.
        reply: What the router was told, ``None`` when the call failed or was cancelled.
    """

    target: str
    call: ModelCall
    outgoing: Outgoing
    reply: ModelReply | None = None


class Questions:
    """Keeps the calls that routers ask for, and plays replies to them.

    Args:
        asker: Writes the calls, and makes them when there are no replies.
        answers: The replies, ``None`` to make the calls.
        sent: Everything that was sent; a call that is answered from here is added to it.

    Attributes:
        calls: Every call, in the order in which they began.
        missing: What a test forgot to say, ``None`` as long as there was a reply to each call.
    """

    def __init__(
        self, asker: Asker, answers: CannedAnswers | None, sent: MutableSequence[Outgoing]
    ) -> None:
        self.calls: list[AskedCall] = []
        self.missing: AssertionError | None = None
        self._asker = asker
        self._answers = answers
        self._sent = sent
        self._played: dict[str, int] = {}

    async def ask(self, request: Request, name: str, call: ModelCall, route: str) -> ModelReply:
        """Return the reply to a call; the engine's :data:`.AskTarget`.

        Raises:
            AskError: The reply is one.
            AssertionError: There is no reply for the target.
        """
        outgoing = self._asker.outgoing(request, name, call, route)
        number = len(self.calls)
        self.calls.append(AskedCall(target=name, call=call, outgoing=outgoing))
        if self._answers is None:
            reply = await self._asker.ask(request, name, call, route)
        else:
            self._sent.append(outgoing)
            reply = complete_reply(await self._reply(self._answers, name, call), outgoing)
        self.calls[number] = replace(self.calls[number], reply=reply)
        return reply

    def outgoing(self, request: Request, name: str, call: ModelCall) -> Outgoing:
        """Return what is sent for a call, without a credential; nothing is asked."""
        return self._asker.outgoing(request, name, call)

    async def _reply(self, answers: CannedAnswers, name: str, call: ModelCall) -> CannedReply:
        if callable(answers):
            found = answers(name, call)
            return await found if inspect.isawaitable(found) else found
        replies = answers.get(name, ())
        if isinstance(replies, CannedReply):
            return replies
        if not replies:
            known = ", ".join(f"`{known}`" for known in answers) or "no target"
            self.missing = AssertionError(
                f"the router asks `{name}`, and the test has no reply for it: `answers` has "
                f"replies for {known}"
            )
            raise self.missing
        number = self._played.get(name, 0)
        self._played[name] = number + 1
        return replies[min(number, len(replies) - 1)]


def complete_reply(reply: CannedReply, outgoing: Outgoing) -> ModelReply:
    """Return a reply with the items that the target's provider would have given it.

    A router that sends its conversation back needs them. What the reply says itself stays.

    Args:
        reply: The reply.
        outgoing: What it is a reply to.

    Raises:
        AskError: The reply is one.
    """
    if isinstance(reply, AskError):
        raise reply
    if isinstance(reply, str):
        reply = ModelReply(text=reply)
    if reply.items and reply.stop:
        return reply
    calls = tuple(
        ScriptedCall(name=call.name, arguments=call.arguments, id=call.id) for call in reply.calls
    )
    turn = Turn(text=reply.text, calls=calls)
    player = Player(Script(version=1, scripts=(Scripted(turns=(turn,)),)), lambda: 0.0)
    played = player.play(
        outgoing.method, outgoing.path, outgoing.headers, outgoing.body, outgoing.wire_format
    )
    read = format_of(outgoing.wire_format).read_reply(b"".join(played.chunks))
    return replace(reply, items=reply.items or read.items, stop=reply.stop or read.stop)
