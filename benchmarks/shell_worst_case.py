"""What reading the worst texts costs, in milliseconds of processor time per 100 KB.

    python benchmarks/shell_worst_case.py [--kilobytes 100] [--rounds 3] [--all]

Every construct of the shells, of JavaScript and of patches, repeated, nested or left open until
the text is long. Prints the ten dearest shapes of each reader, or all of them; exits 1 when one
takes more than 50 ms. Needs the extra ``dev``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import tomli

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation import MutationRules, RuleSetModel, compile_rules, core_packs
from switchyard_core.mutation.labels import Reading
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command

#: Milliseconds per 100 KB.
LIMIT = 50
#: Which reader gets the text.
Family = Literal["bash", "powershell", "cmd", "auto", "code", "patch", "list"]
FAMILIES: tuple[Family, ...] = get_args(Family)

#: Units of a shell, repeated until the text is long; one on each line, with escapes.
UNITS = r"""
a;|a\n|a |ls -l src; |./a;|mkdir a;|a & |a&&|a && b;|a |\| b;|a\||a \| b; |a \| |a\|&b;|a\|\|b;
! a;
a=1;|a=1 |a=$b;|a+=b;|a=$a$a;|a=(b c);|a+=(b);|a[1]=2;|export A=1;|declare a=1;|A=1 B=2 c;|a=$(b);
<a |>/tmp/a |>/tmp/a;|a>/dev/null;|a 2>&1;|2>&1 |<|>|>>|&>/tmp/a;|echo a>/tmp/b;|exec >/tmp/a;
$(<a)
cat <<E;a\nx\nE\n|cat <<E;|cat <<E\n$(a)\nE\n|cat <<E\n`a`\nE\n|cat <<E;\n$(a)\nE\n
cat <<E\nx\nE\n|cat <<E\n|<<E |cat <<E; |a<<<b;|<<<b |cat <<-'E'\n\tx\n\tE\n
apply_patch <<E\n+++ a\nE\n
(a);|(|)|( |{ a; };|{ |}|} |$(|$(a) |$(a);|echo $(a);|"$(a)" |"$(|`|`a` |<(a) |>(a) |<(|a <(b);
"|'|"a" |'a' |"a"|'a'|$'a' |$"a" |"'|"$a" |$a|$a |${a} |${a:-|${|${a%b} |${a//b/c} |${a[@]} |$
$$ |$1
case a in b) c;; esac;|a) b;; |case a in |for a in b; do c; done;
for a in b; do |for ((;;)); do a; done;
while a; do b; done;|while a; do |while |if a; then b; fi;
if a; then |if |elif a; then b; |else |fi;|then |do
f() { a; };|f() { a; }; f;|f() { |f()|function f { a; };|select a in b; do c; done;
until a; do b; done;|done;
# a\n|#|\n| |\t|a\r\n|\0|a\\\n|\\\n|\\a |a|-a |--a=b |1 |1;|.|/|-|*|* |?|*.py |@(a) |@(|!(a) |[|]
[a]|\\
[ a ];|[[ a == b ]];|[[ |[[ a && b ]] && |{a,b}|{a,b} |{1..3} |{a,|~ |$((1)) |$((|((a));|((|$((1+
1+
cd a;|cd ..;|echo a;|printf %s a;|cat f;|eval |eval a;
sudo |env A=1 |xargs |time |exec |nice |timeout 5
bash -c a;|bash -c '|sh -c "a";|trap a EXIT;|. a;|$a;|'a';|find . -exec a {} \\; ;
find . -name a |a --help;
python -c 'open(1)';|node -e 'a()';|perl -e 'a';|awk '{print}';|sed s/a/b/;|psql -c 'select 1';
git add a;
npm run a;|make a;|rm /tmp/a;|cp a /tmp/b;|tar xf a -C /tmp/b;|curl -o /tmp/a http://b/c;
docker exec a b;
x=$(mktemp);|uv run a;|npx a;|powershell -c a;|cmd /c a;|cmd /c |é;|é |ls \| head;|a\|tee /tmp/b;
rsync -n a b;
Get-Item a; |Set-Content $env:TEMP\\a b; |$a = 1; |if ($a) { b }; |@(1)
foreach ($a in b) { c }; |a.b() |::a
if exist a b & |for %a in (b) do |for %a in (b) do c & |rem a\n
a=(b); "${a[@]}";|alias a='b';|alias a='b a'; a;|f() { a; } >/tmp/a; f;|a 1<>/tmp/b;|foo sed -n p;
foo --exec 'ls';|foo -- ls;|git -c alias.x='!ls' x;|hyperfine 'ls' |watchexec ls;|tmux send 'ls' a;
<#|#>|& a;|& 'a' b;|$a = { b };|function a { b };|function a {|'a' \| python -;|[void](a);
@'\na\n'@ \| python -;|(gi a)|$a = gi b;|File]::Open(a,|iex 'a';|a\\b-c d;
copy a %TEMP%\\b & |type a > nul & |^|%a% |call
"""
#: What opens, stands in the middle and closes, nested until the text is long.
NESTED = (
    *(("(", "a", ")"), ("$(", "a", ")"), ('"$(', "a", ')"'), ("{ ", "a;", " }"), ("<(", "a", ")")),
    *(("if a; then ", "b;", "fi;"), ("for a in b; do ", "c;", "done;"), ("${a:-", "b", "}")),
    *(
        ("while a; do ", "b;", "done;"),
        ("$((", "1", "))"),
        ("f() { ", "a;", "};"),
        ("((", "1", "))"),
    ),
    *(("[[ ( ", "a", " ) ]]"), ("case a in b) ", "c", ";; esac;"), ("a=(", "b", ")")),
    *(
        ("!(", "a", ")"),
        ("{a,", "b", "}"),
        ("a $(", "a", ")"),
        ("@{a=", "1", "}"),
        ("& { ", "a", " }"),
    ),
)
#: What begins, is repeated and ends.
FRAMED = (
    *(('echo "', "$a", '"'), ('echo "', "$(a)", '"'), ('echo "', '\\"', '"'), ("a=(", "b ", ")")),
    *(("case a in ", "b) c;; ", "esac"), ("for a in ", "b ", "; do c; done"), ("ls ", "<a ", "")),
    *(("for a in 1 2 3 4 5 6 7 8; do ", "c;", "done"), ("f() { ", "a=1;", "}; f;f;f;f;f;f;f")),
    *(
        ("[[ ", "a && ", "b ]]"),
        ("echo $((", "1+", "1))"),
        ("((", "a=b,", "1))"),
        ("a ", "| b ", "("),
    ),
    *(
        ("cat <<E\n", "$(a)\n", "E\n"),
        ("cat <<E\n", "a b\n", "E\n"),
        ("bash <<'E'\n", "a\n", "E\n"),
    ),
    *(
        ("sh -c '", "a=1;", "'"),
        ("echo '", "a=1;", "'|sh"),
        ("eval '", "a=1;", "'"),
        ("cat ", "<(a) ", ""),
    ),
    *(
        ("python3 - <<'E'\n", line, "E\n")
        for line in ("a=1\n", "open(a)\n", "open('/tmp/a','w')\n")
    ),
    *(("python3 - <<'E'\n", "os.system('a')\n", "E\n"), ("python3 - <<'E'\nopen(", "(", "\nE\n")),
    *(("node - <<'E'\nwriteFileSync('/tmp/a');", line, "E\n") for line in ("a=1;\n", "a();\n")),
    *(("perl - <<'E'\n", "open(a);\n", "E\n"), ("psql <<'E'\n", "insert into a;\n", "E\n")),
    *(
        (f"{name} ", "a ", "")
        for name in ("cat", "echo", "mkdir", "git add", "xargs", "python -m a")
    ),
    *((f"{name} ", "/tmp/a ", "") for name in ("rm", "touch", "tee", "cp")),
    *(("find . ", "-name a ", ""), ("find . ", "-exec a {} ; ", ""), ("sed ", "-e 1p ", "f")),
    *(("printf 'a b' | xargs -I{} echo ", "{} ", ""), ("parallel echo ::: ", "a ", "")),
    *(
        ("sed '", unit, "' f")
        for unit in (
            "s/a/b/w /tmp/a\n",
            "s/a/b/e;",
            "s/e/b/;",
            "/e/",
            "s/[e]/",
            "w /tmp/a\n",
            "e ls\n",
        )
    ),
    *(("sed -n 's/", unit, "/e' f") for unit in ("[", "[]]", "\\", "a")),
    *(
        ("foo ", "'sed x' ", ""),
        ("foo ", "sed bash ", ""),
        ("a=(", "'b' ", '); "${a[@]}" "${a[@]}"'),
    ),
    *(("awk '", unit, "' f") for unit in ('print "a" ', "print (", "system(x);", '"a" | getline;')),
    *(("tclsh <<'E'\n", "exec ls\n", "E\n"), ("bb -e '", '(sh "ls")', "'"), ("vim ", "+x ", "")),
    *(("Rscript -e '", "writeLines(a(b)", "'"), ("groovy -e '", '"a".execute();', "'")),
    *(("osascript -e '", 'do shell script "ls"\n', "'"), ("swift -e '", ".write(to: ", "'")),
    *(("echo ", "a$b'c'\"d\"", ""), ("apply_patch <<'E'\n", "*** Update File: /tmp/a\n", "E\n")),
)
#: Units of JavaScript for the tool `exec`.
CODE_UNITS = r"""
a();|tools.exec_command({cmd:'ls'});|tools.foo();|a;|a |a=1;|const a=1;|let a='x'+b;|(|[|{|}|)|]
a(|()=>|a=>
function a(){};|function a(){|if(a)|else |`a`;|`|`${a}`;|${a}|`${|'a';|'|/a/;|/|//a\n|/*a*/|/*|.a
1+|'a'+|{a:1},
[1],|<a>|</a>|<|>|a?b:|new a;|new a(|await |async |class a{|case a:|switch(a){|for(;;)|try{
catch(a){}|;|...a,
{a,b}=|!|-|=|a=|import(|return |é;|\0|#a |writeFileSync('/tmp/a');|execSync('a');
path.join('a','b');|!ls\n|\\
['a'].join('');|x(a);|a.b.c();|tools['a']();|tools[a]();|%%bash\n|open('/tmp/a','w')\n
os.system('ls')\n
tools.exec_command({cmd:'a\|b;c>/tmp/x'});|tools.apply_patch('*** Update File: node_modules/a');
<!--|a:|a&&|const {a:b}=tools;|a=a.b;|a=a+a;|a=[a];|a={b:a};|a.push('b');
a.b='c';|import {a as b} from 'c';
for(const a of ['b','c'])|['a','b'].map(a=>|['a'].map(tools.b);
function f(a){f(a)};f('b');|a.call(b,'c');
a=['b',a].join('');|a=`${a}${a}`;|require('a').b();
const b={c(d){b.c(d)}};b.c('e');|'a'.concat('b')|.trim()
"""
PATCH_UNITS = r"""
*** Update File: a\n|*** Add File: dist/a.js\n|+++ a\n|--- /dev/null\n
--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n
rename to a\n|*** |a|+++ |\n|+++\ta\n|*** Add File:  |*** Move to: dist/a.js\n
"""


def units(table: str) -> list[str]:
    """Return the units of a table: between bars, with the escapes of Python."""
    found: list[str] = []
    for line in table.strip("\n").split("\n"):
        for part in line.replace("\\|", "\x01").split("|"):
            unit = part.replace("\x01", "|").encode("latin-1", "backslashreplace")
            found.append(unit.decode("unicode_escape"))
    return list(dict.fromkeys(unit for unit in found if unit))


def repeated(unit: str, size: int) -> str:
    """Return a unit again and again."""
    return (unit * (size // len(unit) + 1))[:size]


def shell_shapes(size: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every shape of shell."""
    for unit in units(UNITS):
        yield f"{unit!r} repeated", repeated(unit, size)
    for head, middle, tail in NESTED:
        depth = size // (len(head) + len(tail))
        yield f"{head!r} nested", head * depth + middle + tail * depth
    for head, unit, tail in FRAMED:
        yield f"{unit!r} in {(head + tail)!r}", head + unit * (size // len(unit)) + tail


def code_shapes(size: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every shape of JavaScript."""
    for unit in units(CODE_UNITS):
        yield f"{unit!r} repeated", repeated(unit, size)
    for head, tail in (
        ("(", ")"),
        ("a(", ")"),
        ("[", "]"),
        ("{a:", "}"),
        ("()=>{", "}"),
        ("`${", "}`"),
    ):
        depth = size // len(head + tail)
        yield f"{head!r} nested", head * depth + "1" + tail * depth
    for head, unit, tail in (
        *(("x(`", "${a}", "`)"), ("x([", "'a',", "])"), ("x(", "'a'+", "'b')"), ("x(", "1,", "1)")),
        *(("tools.exec_command({cmd:`", unit, "`})") for unit in ("a\n", "a;", "a|", "${a}")),
    ):
        yield f"{unit!r} in {(head + tail)!r}", head + unit * (size // len(unit)) + tail


def list_shapes(size: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the arguments of calls that hold many commands."""
    for command in ("ls", "a|b;c", "a=1", "a;" * 2000):
        count = size // (len(command) + 8)
        yield f"{command[:9]!r} again", json.dumps({"commands": [command] * count})
        commands = [f"{command}{number}" for number in range(count)]
        yield f"{command[:9]!r} with numbers", json.dumps({"commands": commands})
    yield "argv", json.dumps({"commands": [["mkdir", *["a"] * (size // 5)]]})


def shapes(family: Family, size: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every shape for a reader."""
    if family == "code":
        return code_shapes(size)
    if family == "list":
        return list_shapes(size)
    if family == "patch":
        return ((f"{unit!r} repeated", repeated(unit, size)) for unit in units(PATCH_UNITS))
    return shell_shapes(size)


def new_rules() -> MutationRules:
    """Return the default pack, compiled, with nothing remembered."""
    sets = {p.name: RuleSetModel.model_validate(tomli.loads(p.text)) for p in core_packs()}
    return compile_rules(["coding_agents"], sets)


def read(family: Family, text: str, rules: MutationRules) -> Reading:
    """Return what a reader finds in a text."""
    if family in {"bash", "powershell", "cmd", "auto"}:
        return read_command(text, PathClasses(), dialect=family)
    tool = {"code": "exec", "patch": "apply_patch"}.get(family)
    call = ToolCall(id="", name=tool or "run_commands", source=text, kind="custom")
    if tool is None:
        call = ToolCall(id="", name="run_commands", source=text)
    verdict = rules.label(call)
    return Reading(label=verdict.label, word=verdict.word, detail=verdict.detail)


def measure(family: Family, text: str, rounds: int) -> tuple[float, Reading]:
    """Return the least milliseconds per 100 KB of some rounds, and what was found."""
    seconds: list[float] = []
    for _ in range(rounds):
        # Nothing of it may be remembered.
        rules = new_rules()
        began = time.thread_time()
        reading = read(family, text, rules)
        seconds.append(time.thread_time() - began)
    return 1e8 * min(seconds) / len(text), reading


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 when a shape takes more than the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kilobytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args(arguments)
    worst = 0.0
    # Tables and patterns are compiled once per process.
    for family in FAMILIES:
        for text in (
            "python3 -c 'open(1)'; node -e 'a()'; rm a $b > c",
            "tools.exec_command('ls')",
        ):
            read(family, text, new_rules())
    for family in FAMILIES:
        rows = []
        for name, text in shapes(family, 1000 * options.kilobytes):
            cost, reading = measure(family, text, options.rounds)
            rows.append((cost, name, reading))
        rows.sort(key=lambda row: -row[0])
        worst = max(worst, rows[0][0])
        print(f"{family}: {len(rows)} shapes, ms per 100 KB")
        for cost, name, reading in rows if options.all else rows[:10]:
            print(f"  {cost:6.1f}  {name:44.44}  {reading.label}: {reading.detail[:30]}")
    print(f"worst {worst:.1f} ms, limit {LIMIT} ms")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
