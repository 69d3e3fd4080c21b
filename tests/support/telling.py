"""A route type whose router tells what a test writes."""

from __future__ import annotations

from switchyard_core import Decision, Options, Reason, Request, RouteType, TargetName, hookimpl
from switchyard_core.answering import SectionFinished, SectionStarted, TextDelta

POLICY = """
schema_version = 1

[llm_clients.provider]
format = "openai_chat"
base_url = "https://provider.test/v1"
max_retries = 0

[targets.one]
id = "provider/one"
llm_client = "provider"

[routes.main]
id = "main"
type = "told"
target = "one"
"""


class ToldOptions(Options):
    target: TargetName
    keepalive_s: float = 10.0
    progress_events: bool = True


class Teller:
    """Gives a route type whose router tells what a test writes."""

    def __init__(self, tell) -> None:
        self.tell = tell

    @hookimpl
    def switchyard_route_types(self):
        tell = self.tell

        class ToldRouter:
            def __init__(self, options) -> None:
                self.options = options

            async def route(self, request, context):
                return Decision(target=self.options.target, reason=Reason(code="t", detail="t"))

            async def answer(self, request, context):
                async for event in tell(context):
                    yield event

        kinds = {"summary": "tells", "kind": "answers"}
        return [RouteType(name="told", options=ToldOptions, router=ToldRouter, **kinds)]


def section(text):
    return SectionStarted(kind="part"), TextDelta(text), SectionFinished()


def request(wire_format="openai_chat", **more):
    key = "input" if wire_format == "openai_responses" else "messages"
    body = {"model": "main", key: [{"role": "user", "content": "go"}], "max_tokens": 9, **more}
    if wire_format != "anthropic_messages":
        del body["max_tokens"]
    return Request(wire_format=wire_format, body=body)
