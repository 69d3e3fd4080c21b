# Makes the project's own virtual environment. Sourced, from the root of the checkout, by ./demo,
# ./test and .ci/run; POSIX sh. It needs Python 3.11 or newer with venv and pip, nothing else.
#
#   ensure_environment [EXTRAS]   install the project, editable, with EXTRAS such as "dev"
#
# Afterwards $environment is the folder. It is made once and used again until pyproject.toml or
# the place of the checkout changes (scripts in a virtual environment hold absolute paths).

environment="${SWITCHYARD_ENVIRONMENT:-$PWD/.venv}"

# Print the command of the newest suitable Python; say what was tried if there is none.
find_python() {
    tried=""
    set -- python3.14 python3.13 python3.12 python3.11 python3 python
    [ -z "${PYTHON:-}" ] || set -- "$PYTHON"
    for candidate in "$@"; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        if ! "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            tried="$tried $candidate (too old)"
        elif ! "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
            # Some systems ship Python without the modules that make environments.
            tried="$tried $candidate (without venv)"
        else
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    {
        echo "switchyard needs Python 3.11 or newer with its venv module; found:${tried:- none}"
        echo "Install it (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install"
        echo "python), or name one: PYTHON=/path/to/python3.12 $0"
    } >&2
    return 1
}

# What the environment was made from; the place of the checkout is the first line.
describe_environment() {
    printf '%s\n# extras: %s\n' "$PWD" "$1"
    cat pyproject.toml
}

ensure_environment() {
    extras="${1:-}"
    stamp="$environment/switchyard-stamp"
    made_from=""
    place=""
    if [ -f "$stamp" ] && "$environment/bin/python" -c '' 2>/dev/null; then
        made_from="$(cat "$stamp")"
        read -r place <"$stamp" || true
        [ "$made_from" != "$(describe_environment "$extras")" ] || return 0
        # An environment with more in it serves as well.
        [ -n "$extras" ] || [ "$made_from" != "$(describe_environment dev)" ] || return 0
    fi
    if [ "$place" != "$PWD" ]; then
        python="$(find_python)" || return 1
        echo "making the environment $environment with $python" >&2
        "$python" -m venv --clear "$environment" || return 1
    fi
    echo "installing switchyard-core${extras:+[$extras]} and what it needs" >&2
    rm -f "$stamp"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
        --editable ".${extras:+[$extras]}" || return 1
    describe_environment "$extras" >"$stamp"
}
