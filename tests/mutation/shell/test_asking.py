"""Programs that ask in one use and change something in another."""

from __future__ import annotations

from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.shell import read_command
from switchyard_core.mutation.tables import load_table

#: Files of the command table.
FILES = ("asks", "outputs", "formatters", "programs", "git", "packages", "tools")
#: What only reads, what does not, and the label of that.
USES = [
    (
        "gh api repos/a/b -X GET -f state=open",
        "gh api repos/a/b -X PATCH -f state=closed",
        "file_write_other",
    ),
    ("make -qp", "make -j4 all", "file_write_other"),
    ("make -q all", "make -C quiet all", "file_write_other"),
    ("cmake --build build --target help", "cmake --build build --target all", "file_write_other"),
    ("npx turbo run build --dry=json", "npx turbo run build", "file_write_other"),
    ("ninja -C out -t targets", "ninja -t clean", "file_write_other"),
    ("go build -n ./...", "go build ./...", "file_write_other"),
    ("git rerere diff", "git rerere forget a", "file_write_other"),
    ("xcode-select -p", "xcode-select -s /x", "file_write_other"),
    ("lipo -info a", "lipo -create a b -output c", "file_write_other"),
    ("codesign -dv --verbose=4 a.app", "codesign -f -v -s - a.app", "file_write_other"),
    ("swift package dump-package", "swift package init", "file_edit"),
    ("mysqladmin -u root status", "mysqladmin create a", "file_write_other"),
    ("qpdf --check a.pdf", "qpdf --linearize a.pdf b.pdf", "file_write_other"),
    ("dotnet csharpier . --check", "dotnet csharpier .", "file_edit"),
    ("yarn dedupe --check", "yarn dedupe", "file_write_other"),
    ("nim check a.nim", "nim c a.nim", "file_write_other"),
    ("gcloud logging read x --limit 5", "gcloud run deploy", "unknown"),
    ("kubectl kustomize a", "kubectl kustomize a -o b.yaml", "file_edit"),
    ("argocd app diff a", "argocd app sync a", "unknown"),
    ("xcrun simctl list devices", "xcrun simctl boot a", "unknown"),
    ("adb devices", "adb push a /sdcard/a", "file_write_other"),
    ("adb shell getprop", "adb pull /sdcard/a src/a.kt", "file_edit"),
    ("javap -c A", "java A", "unknown"),
    ("jps -l; jstack 1; jstat -gc 1", "jmap -dump:file=a.hprof 1", "unknown"),
    ("jdeps a.jar", "jdeps --generate-module-info src a.jar", "file_edit"),
    ("promtool check rules a.yml", "promtool tsdb create-blocks-from x", "unknown"),
    ("stern web", "kubectl delete pod web", "unknown"),
    ("dbt ls --select a", "dbt run", "unknown"),
    ("vagrant status", "vagrant up", "unknown"),
    ("clj-kondo --lint src", "clojure -M:run", "unknown"),
    ("pyrefly check", "pyrefly check --suppress-errors", "file_edit"),
    ("redis-cli --scan --pattern 'a*'", "redis-cli del a", "file_write_other"),
    ("aspell list < a.md", "aspell -l en check a.md", "unknown"),
    ("nginx -t -c a.conf", "nginx -c a.conf", "unknown"),
    ("haproxy -c -f a.cfg", "haproxy -f a.cfg", "unknown"),
    ("iptables -L -n", "iptables -D INPUT 1", "unknown"),
    ("keytool -list -keystore a", "keytool -genkey -keystore a", "file_write_other"),
    ("zip -sf a.zip", "zip -rT a.zip src", "file_write_other"),
    ("patchelf --print-rpath a", "patchelf --set-rpath a b", "file_write_other"),
    ("snakemake -n", "snakemake -j4", "unknown"),
    ("logrotate -d a.conf", "logrotate -v a.conf", "unknown"),
    ("elm-test", "elm-test init", "file_edit"),
    ("kafka-topics.sh --list", "kafka-topics.sh --create --topic a", "unknown"),
    ("supabase db diff", "supabase db diff -f a", "file_write_other"),
    ("earthly ls", "earthly +all", "unknown"),
    ("xsv stats a.csv", "xsv split out a.csv", "file_write_other"),
    ("bsdtar -tf a.zip", "bsdtar -xf a.zip", "file_write_other"),
]


def test_use_that_asks_reads_and_its_neighbour_does_not() -> None:
    wanted = [(asks, "read_only") for asks, _other, _label in USES]
    wanted += [(other, label) for _asks, other, label in USES]

    assert [(use, read_command(use, PathClasses()).label) for use, _label in wanted] == wanted


def test_programs_that_ask_have_a_label_for_their_other_uses() -> None:
    entries = {file: load_table(file) for file in FILES}
    listed = {
        name
        for table in entries.values()
        for names in table.get("simple", {}).values()
        for name in names
    }
    for file, table in entries.items():
        kinds = ("interpreter",) if file == "asks" else ("interpreter", "program")
        listed |= {
            name for kind in kinds for entry in table.get(kind, ()) for name in entry["names"]
        }
    asking = {name for entry in entries["asks"]["program"] for name in entry["names"]}

    assert asking - listed == set()
