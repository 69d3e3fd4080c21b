"""Files that a policy includes: where they may lie, what they may hold, whose lines are named."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import CheckResult, check_policy, check_policy_text
from switchyard_core.policy.include import MAX_FILES

HEAD = "schema_version = 1\n"
TAIL = "[targets]\n[routes]\n"
CMS = '[[mutation_rules.cms.rules]]\nlabel = "file_edit"\nmatch = ["publish_page"]\n'

#: Writes files below the policy's folder, the policy itself as ``policy.toml``, and checks it.
Check = Callable[..., CheckResult]


@pytest.fixture
def check(tmp_path: Path, registry: PluginRegistry, monkeypatch: pytest.MonkeyPatch) -> Check:
    folder = tmp_path / "policies"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)

    def run(policy: str, **files: str) -> CheckResult:
        for name, text in {"policy": policy, **files}.items():
            path = folder / f"{name.replace('__', '/')}.toml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return check_policy("policies/policy.toml", registry)

    return run


def brief(result: CheckResult) -> list[str]:
    return [f"{f.file}:{f.line}:{f.column} {f.code} {f.path}" for f in result.findings]


def test_include_gives_the_policy_the_rule_sets_of_the_file(check: Check) -> None:
    result = check(HEAD + 'include = ["rules/cms.toml"]\n' + TAIL, rules__cms=CMS)

    assert brief(result) == []
    assert result.policy is not None
    assert result.policy.rule_sets["cms"].rules[0].match == ["publish_page"]
    assert result.policy.files == (Path("policies/policy.toml"), Path("policies/rules/cms.toml"))


def test_route_may_use_an_included_rule_set(check: Check) -> None:
    result = check(
        HEAD
        + 'include = ["cms.toml"]\n[llm_clients.c]\nformat = "openai_chat"\n'
        + 'base_url = "https://example.com"\n[targets.a]\nid = "a"\nllm_client = "c"\n'
        + '[targets.b]\nid = "b"\nllm_client = "c"\n[routes.r]\nid = "r"\ntype = "plan_execute"\n'
        + 'capable_target = "a"\nefficient_target = "b"\nmutation_rules = ["cms"]\n',
        cms=CMS,
    )

    assert brief(result) == []


def test_included_file_may_include_files_of_its_own_folder(check: Check) -> None:
    result = check(
        HEAD + 'include = ["rules/all.toml"]\n' + TAIL,
        rules__all='include = ["cms.toml"]\n[mutation_rules.mine]\nextends = ["cms"]\n',
        rules__cms=CMS,
    )

    assert brief(result) == []
    assert result.policy is not None
    assert {"cms", "mine"} <= result.policy.rule_sets.keys()


def test_finding_in_an_included_file_names_its_file_and_line(check: Check) -> None:
    result = check(
        HEAD + 'include = ["rules/cms.toml"]\n' + TAIL + "typo = 1\n",
        rules__cms="# the rules of the site\n" + CMS.replace("match", "maches"),
    )

    assert brief(result) == [
        "policies/policy.toml:5:8 SY106 routes.typo",
        "policies/rules/cms.toml:4:1 SY104 mutation_rules.cms.rules[0].maches",
    ]


def test_column_inside_a_string_of_an_included_file_is_right(check: Check) -> None:
    result = check(
        HEAD + 'include = ["cms.toml"]\n' + TAIL,
        cms=CMS.replace('"publish_page"', '"re:ab(c"'),
    )

    assert brief(result) == ["policies/cms.toml:3:14 SY402 mutation_rules.cms.rules[0].match[0]"]


def test_include_of_no_file_proposes_the_nearest_and_reports_no_consequence(check: Check) -> None:
    policy = HEAD + 'include = ["rules/csm.toml"]\n[targets]\n[routes]\n'
    policy += '[mutation_rules.mine]\nextends = ["cms"]\n'

    (finding,) = check(policy, rules__cms=CMS).findings

    assert (finding.code, finding.line, finding.column) == ("SY110", 2, 12)
    assert finding.message == "unknown include `rules/csm.toml`: there is no such file"
    assert finding.fix == "did you mean `rules/cms.toml`?"


def test_unknown_rule_set_is_reported_when_every_include_was_read(check: Check) -> None:
    policy = HEAD + 'include = ["cms.toml"]\n[targets]\n[routes]\n'

    result = check(policy + '[mutation_rules.mine]\nextends = ["cns"]\n', cms=CMS)

    assert brief(result) == ["policies/policy.toml:6:12 SY404 mutation_rules.mine.extends[0]"]
    assert result.findings[0].fix == "did you mean `cms`?"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("../outside.toml", id="up"),
        pytest.param("rules/../../outside.toml", id="up_later"),
        pytest.param("/etc/rules.toml", id="absolute"),
        pytest.param("~/rules.toml", id="home"),
        pytest.param("C:/rules.toml", id="drive"),
        pytest.param(r"rules\\cms.toml", id="backslash"),
    ],
)
def test_include_outside_of_the_folder_is_refused(check: Check, path: str) -> None:
    result = check(HEAD + f'include = ["{path}"]\n' + TAIL, rules__cms=CMS)

    assert brief(result) == ["policies/policy.toml:2:12 SY111 include[0]"]


def test_symbolic_link_that_leads_out_is_refused(check: Check, tmp_path: Path) -> None:
    (tmp_path / "outside.toml").write_text(CMS)
    (tmp_path / "policies" / "link.toml").symlink_to("../outside.toml")

    result = check(HEAD + 'include = ["link.toml"]\n' + TAIL)

    assert brief(result) == ["policies/policy.toml:2:12 SY111 include[0]"]
    assert result.findings[0].message == "`link.toml` leads out of the policy's folder"


def test_symbolic_link_within_the_folder_is_followed(check: Check, tmp_path: Path) -> None:
    (tmp_path / "policies" / "link.toml").symlink_to("cms.toml")

    assert brief(check(HEAD + 'include = ["link.toml"]\n' + TAIL, cms=CMS)) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("  ", id="spaces"),
    ],
)
def test_blank_include_is_refused(check: Check, text: str) -> None:
    result = check(HEAD + f'include = ["{text}"]\n' + TAIL)

    assert brief(result) == ["policies/policy.toml:2:12 SY108 include[0]"]


def test_folder_as_include_is_refused(check: Check) -> None:
    result = check(HEAD + 'include = ["rules"]\n' + TAIL, rules__cms=CMS)

    assert brief(result) == ["policies/policy.toml:2:12 SY110 include[0]"]


def test_include_that_is_no_array_of_strings_is_a_wrong_type(check: Check) -> None:
    assert brief(check(HEAD + "include = 3\n" + TAIL)) == [
        "policies/policy.toml:2:11 SY106 include"
    ]
    assert brief(check(HEAD + "include = [3]\n" + TAIL)) == [
        "policies/policy.toml:2:12 SY106 include[0]"
    ]


def test_policy_that_includes_itself_is_refused(check: Check) -> None:
    result = check(HEAD + 'include = ["policy.toml"]\n' + TAIL)

    assert brief(result) == ["policies/policy.toml:2:12 SY112 include[0]"]
    assert result.findings[0].notes == ("it is the policy itself",)


def test_cycle_of_includes_is_refused_at_its_end(check: Check) -> None:
    result = check(
        HEAD + 'include = ["a.toml"]\n' + TAIL,
        a='include = ["b.toml"]\n',
        b='\ninclude = ["a.toml"]\n',
    )

    assert brief(result) == ["policies/b.toml:2:12 SY112 include[0]"]
    assert result.findings[0].notes == ("first included at policies/policy.toml:2:12",)


def test_file_included_twice_names_both_places(check: Check) -> None:
    result = check(HEAD + 'include = ["cms.toml", "./cms.toml"]\n' + TAIL, cms=CMS)

    assert brief(result) == ["policies/policy.toml:2:24 SY112 include[1]"]
    assert result.findings[0].notes == ("first included at policies/policy.toml:2:12",)


@pytest.mark.parametrize(
    ("own", "others", "place", "first"),
    [
        pytest.param(
            "[mutation_rules.cms]\n",
            {"a": CMS},
            "policies/a.toml:1:18",
            "policies/policy.toml:3:17",
            id="policy_and_include",
        ),
        pytest.param(
            "",
            {"a": CMS, "b": "\n" + CMS},
            "policies/b.toml:2:18",
            "policies/a.toml:1:18",
            id="two_includes",
        ),
    ],
)
def test_rule_set_declared_twice_names_both_places(
    check: Check, own: str, others: dict[str, str], place: str, first: str
) -> None:
    names = ", ".join(f'"{name}.toml"' for name in others)

    result = check(HEAD + f"include = [{names}]\n" + own + TAIL, **others)

    assert brief(result) == [f"{place} SY113 mutation_rules.cms"]
    assert result.findings[0].notes == (f"first declared at {first}",)


def test_included_file_may_hold_rule_sets_and_includes_only(check: Check) -> None:
    result = check(HEAD + 'include = ["cms.toml"]\n' + TAIL, cms='[targets.x]\nid = "x"\n' + CMS)

    assert brief(result) == ["policies/cms.toml:1:2 SY104 targets"]
    assert result.findings[0].notes == ("allowed keys: include, mutation_rules",)


def test_included_file_that_is_no_toml_is_reported_with_its_place(check: Check) -> None:
    policy = HEAD + 'include = ["cms.toml"]\n[targets]\n[routes]\n'

    result = check(policy + '[mutation_rules.mine]\nextends = ["cms"]\n', cms="x = \n")

    assert brief(result) == ["policies/cms.toml:1:1 SY103 "]


def test_too_many_includes_are_refused(check: Check) -> None:
    files = {f"f{number}": "" for number in range(MAX_FILES + 1)}
    names = ", ".join(f'"{name}.toml"' for name in files)

    result = check(HEAD + f"include = [{names}]\n" + TAIL, **files)

    assert [finding.code for finding in result.findings] == ["SY101"]
    assert result.findings[0].path == f"include[{MAX_FILES}]"


def test_thousands_of_unknown_includes_are_refused_at_once(check: Check) -> None:
    names = ", ".join(f'"rules/f{number}.toml"' for number in range(10_000))
    files = {f"rules__g{number}": "" for number in range(300)}
    start = time.process_time()

    result = check(HEAD + f"include = [{names}]\n" + TAIL, **files)

    assert [finding.code for finding in result.findings] == ["SY110"] * MAX_FILES + ["SY101"]
    assert time.process_time() - start < 2


def test_unreadable_include_is_reported_where_it_is_named(
    check: Check, registry: PluginRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(HEAD + 'include = ["cms.toml"]\n' + TAIL, cms=CMS)
    whole = Path.open

    def refusing(path: Path, *arguments: Any, **options: Any) -> Any:
        # Tests may run as a user whom no permission stops.
        if path.name == "cms.toml":
            raise PermissionError(13, "Permission denied")
        return whole(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refusing)
    result = check_policy("policies/policy.toml", registry)

    assert brief(result) == ["policies/policy.toml:2:12 SY110 include[0]"]
    assert result.findings[0].message == "cannot read the file: permission denied"


def test_too_large_includes_are_refused_together(check: Check) -> None:
    half = "#" + "x" * 150_000 + "\n"

    result = check(HEAD + 'include = ["a.toml", "b.toml"]\n' + TAIL, a=half, b=half)

    assert brief(result) == ["policies/policy.toml:2:22 SY101 include[1]"]


def test_digest_changes_with_an_included_file(check: Check) -> None:
    policy = HEAD + 'include = ["cms.toml"]\n' + TAIL
    first = check(policy, cms=CMS).policy
    second = check(policy, cms=CMS + "#\n").policy

    assert first is not None
    assert second is not None
    assert first.digest != second.digest


def test_include_of_a_text_starts_from_its_base_folder(
    tmp_path: Path, registry: PluginRegistry
) -> None:
    (tmp_path / "cms.toml").write_text(CMS)
    text = HEAD + 'include = ["cms.toml"]\n' + TAIL

    result = check_policy_text(text, "a text", registry, base_dir=tmp_path)

    assert result.findings == ()
    assert result.policy is not None
    assert result.policy.files == (tmp_path / "cms.toml",)


@settings(max_examples=200)
@given(path=st.text(max_size=30), content=st.binary(max_size=60))
def test_any_path_and_any_bytes_give_findings_or_a_policy(
    tmp_path_factory: pytest.TempPathFactory, path: str, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    (folder / "a.toml").write_bytes(content)
    quoted = "".join(f"\\U{ord(c):08x}" for c in path if not 0xD800 <= ord(c) < 0xE000)
    text = HEAD + f'include = ["a.toml", "{quoted}"]\n' + TAIL

    result = check_policy_text(text, "p", PluginRegistry(), base_dir=folder)

    assert (result.policy is None) == bool(result.errors)
