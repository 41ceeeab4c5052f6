#!/usr/bin/env bash
# Everything that must hold before a change is merged: style, types, import contract, tests. Runs all, then says what failed.
#
#   ./check.sh                   all of it; one test trains for real, so allow some minutes
#   ./check.sh lint types        only the steps named: lint, types, imports, tests
#   ./check.sh tests -- -x -k sql    what follows -- goes to pytest
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

BIN="${VENV:-.venv}/bin"
[ -x "$BIN/python" ] || { echo "check.sh: $BIN/python is missing; run ./install.sh first." >&2; exit 2; }

steps=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    steps+=("$1")
    shift
done
[ "${1:-}" = -- ] && shift
[ ${#steps[@]} -gt 0 ] || steps=(lint types imports tests)

# Tests of the engine beside all others: two cores are idle for most of an engine's start. Exit code 5: nothing to run.
run_tests() {
    local log codes=()
    log="$(mktemp)"
    "$BIN/python" -m pytest -m "engine and not nightly" "$@" >"$log" 2>&1 &
    "$BIN/python" -m pytest -m "not engine and not nightly" "$@"
    codes+=($?)
    wait $!
    codes+=($?)
    cat "$log" && rm -f "$log"
    [[ "${codes[*]}" =~ ^[05]\ [05]$ ]]
}

run_step() {
    case "$1" in
        lint) "$BIN/ruff" check . && "$BIN/ruff" format --check . ;;
        types) "$BIN/mypy" ;;
        imports) "$BIN/lint-imports" ;;
        tests) run_tests "${@:2}" ;;
        *) echo "check.sh: unknown step '$1'; use lint, types, imports or tests." >&2; exit 2 ;;
    esac
}

failed=()
for step in "${steps[@]}"; do
    echo "== $step"
    run_step "$step" "$@" || failed+=("$step")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "check.sh: failed: ${failed[*]}" >&2
    exit 1
fi
echo "check.sh: all passed: ${steps[*]}"
