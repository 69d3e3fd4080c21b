"""Names and ids keep their identity on the way to another wire format and back."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from switchyard_core.wire import FORMATS
from switchyard_core.wire.naming import ToolNames, id_at_target, id_for_caller, told_apart
from switchyard_core.wire.neutral import AskedTool, ToolName

CHAT, RESPONSES, MESSAGES = FORMATS.values()
LEGAL = st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True)
#: Names as tools have them, with those that others become.
NAME = st.one_of(
    st.sampled_from(["read", "ns__read", "a.b", "a_b", "a b", "é", "x" * 64, "x" * 65, "x" * 129]),
    LEGAL,
    st.text(min_size=1, max_size=140),
)
TOOL = st.builds(ToolName, name=NAME, namespace=st.sampled_from(["", "", "ns", "mcp__ns", "n s"]))
FORMAT = st.sampled_from(list(FORMATS.values()))


def names_of(tools: list[ToolName], target) -> ToolNames:
    return ToolNames([AskedTool(tool=tool) for tool in tools], target)


@given(st.lists(TOOL, min_size=1, max_size=12), FORMAT)
@example([ToolName(name="x", namespace="ns"), ToolName(name="ns__x")], CHAT)
@example([ToolName(name="a.b"), ToolName(name="a b"), ToolName(name="a_b")], MESSAGES)
@example([ToolName(name="x" * 70 + "1"), ToolName(name="x" * 70 + "2")], RESPONSES)
def test_tools_keep_apart_and_come_back(tools, target):
    names = names_of(tools, target)

    at_target = {tool: names.at_target(tool) for tool in tools}

    assert len(set(at_target.values())) == len(set(tools))
    for tool, named in at_target.items():
        assert len(named.name) <= target.longest_name
        assert named.name.isascii()
        assert named.name.replace("_", "a").replace("-", "a").isalnum()
        assert not named.namespace or target.has_namespaces
        assert names.asked(named.name, named.namespace).tool == tool


@given(st.lists(TOOL, min_size=1, max_size=6), FORMAT)
def test_names_follow_from_the_request_alone(tools, target):
    first, second = names_of(tools, target), names_of(list(tools), target)

    assert [first.at_target(t) for t in tools] == [second.at_target(t) for t in tools]


@given(LEGAL, FORMAT)
def test_a_legal_name_stays(name, target):
    tool = ToolName(name=name)

    assert names_of([tool], target).at_target(tool) == tool
    assert names_of([], target).at_target(tool) == tool
    assert not names_of([tool], target).changed


def test_a_name_that_a_disambiguated_one_would_have_is_given_once():
    odd = ToolName(name="a.b")
    taken = names_of([odd], CHAT).at_target(odd)

    names = names_of([taken, odd], CHAT)

    assert names.at_target(taken) == taken
    assert names.at_target(odd) != taken
    assert names.asked(names.at_target(odd).name).tool == odd
    assert set(names.changed) == {odd}


def test_a_tool_that_is_offered_twice_has_one_name():
    tool = ToolName(name="a.b")

    assert names_of([tool, tool], CHAT).at_target(tool) == names_of([tool], CHAT).at_target(tool)


def test_a_model_may_forget_the_namespace_while_one_tool_alone_is_called_so():
    near, far = ToolName(name="x", namespace="a"), ToolName(name="y", namespace="a")
    other = ToolName(name="y", namespace="b")
    names = names_of([near, far, other], RESPONSES)

    assert names.asked("x").tool == near
    assert names.asked("y") is None
    assert names.asked("y", "b").tool == other
    assert names.asked("z") is None


# --- ids ---------------------------------------------------------------------------------------

#: Ids as servers make them.
SEEN = (
    "call_Ab12", "toolu_01Ab", "fc_12-3", "functions.read:0", "functions.write_file:12", "1",
    "call_", "sy1", "call_sy1a-2eb", "call_sy1a-2E", "a" * 64 + "1", "é", "\ud800", "x y/z",
    "functions.mcp__server__a_very_long_name_of_a_tool:3",
)  # fmt: skip
ID = st.one_of(st.sampled_from(SEEN), st.text(min_size=1, max_size=90))


@given(ID, FORMAT)
def test_the_caller_gets_a_legal_id_in_its_style(made, caller):
    told = id_for_caller(made, caller)

    assert caller.legal_id.fullmatch(told)
    assert told.startswith("toolu_" if caller is MESSAGES else "call_")
    assert told == id_for_caller(made, caller)
    assert MESSAGES.legal_id.fullmatch(told)  # which is the strictest


@given(ID, FORMAT, FORMAT)
def test_a_target_takes_the_id_that_comes_back(made, caller, target):
    told = id_for_caller(made, caller)

    sent = id_at_target(told, target)

    assert target.legal_id.fullmatch(sent)
    assert id_at_target(sent, target) == sent or "sy1" in sent


def test_ids_come_back_to_the_server_that_made_them():
    missed = [
        made
        for made in ("functions.read:0", "functions.write_file:12", "x y/z", "é", "a.b-c")
        for caller in FORMATS.values()
        if id_at_target(id_for_caller(made, caller), CHAT) != made
    ]

    assert missed == []


@given(st.lists(ID, min_size=2, max_size=12, unique=True), FORMAT)
@example(["a" * 64 + "1", "a" * 64 + "2"], MESSAGES)
@example(["a.b", "a-2eb"], CHAT)
def test_ids_that_differ_keep_apart(made, caller):
    bare = {each.removeprefix("call_").removeprefix("toolu_") for each in made}
    if len(bare) < len(made):  # another style of the same id
        return
    told = {id_for_caller(each, caller) for each in made}

    assert len(told) == len(made)
    # However long, and of whatever format.
    for target in FORMATS.values():
        assert len({id_at_target(each, target) for each in made}) == len(made)


@given(ID, FORMAT)
def test_calls_with_one_id_are_told_apart(made, caller):
    ids = [id_for_caller(made, caller), *(told_apart(made, number, caller) for number in (1, 2))]

    assert len(set(ids)) == len(ids)
    assert all(caller.legal_id.fullmatch(each) for each in ids)


@given(st.from_regex(r"[a-zA-Z0-9_-]{1,40}", fullmatch=True), FORMAT)
def test_a_legal_id_of_the_client_stays(told, target):
    sent = id_at_target(told, target)

    assert sent == told or told.startswith(("call_sy1", "toolu_sy1"))
