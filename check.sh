#!/usr/bin/env bash
# Everything that must hold before a change is merged. Runs all steps, then says which failed.
#
#   ./check.sh                    lint, types, imports and the three stages of tests
#   ./check.sh lint types         only the steps named
#   ./check.sh tests              unit, system, engine
#   ./check.sh nightly            what a commit's CI leaves out: generated, trainings, faults, gpu
#   ./check.sh release            the wheel of the commit installed elsewhere, README's two commands, documents, licences
#   ./check.sh system -- -x -k sql     what follows -- goes to pytest
set -uo pipefail
case "${1:-}" in
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit
        ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

PYTHON="${VENV:-.venv}/bin/python"
BIN="$(dirname "$PYTHON")"
[ -x "$PYTHON" ] || { echo "check.sh: $PYTHON is missing; run ./install.sh first." >&2; exit 2; }

TESTS=(unit system engine)
NIGHTLY=(generated trainings faults gpu)
steps=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case "$1" in
        tests) steps+=("${TESTS[@]}") ;;
        nightly) steps+=("${NIGHTLY[@]}") ;;
        *) steps+=("$1") ;;
    esac
    shift
done
[ "${1:-}" = -- ] && shift
[ ${#steps[@]} -gt 0 ] || steps=(lint types imports "${TESTS[@]}")

# Exit code 5 of pytest: no test was chosen, which is no failure where -k chooses some of several steps.
run_pytest() {
    "$PYTHON" -m pytest "$@"
    local code=$?
    [ $code = 0 ] || { [ $code = 5 ] && [ ${#steps[@]} -gt 1 ]; }
}

# New cases, from a seed that repeats them: SEED=7 ./check.sh generated
draw_anew() {
    local seed="${SEED:-$(date +%s)}"
    echo "SEED=$seed repeats this."
    FUZZ_CASES="${FUZZ_CASES:-20000}" run_pytest --timeout 3600 \
        --hypothesis-profile random --hypothesis-seed "$seed" "$@"
}

# The packages of the GPU lock (11 GB), kept in GPU_VENV; no GPU is needed.
resolve_gpu() {
    local venv="${GPU_VENV:-.venv-gpu}"
    DEVICE=gpu VENV="$venv" ./install.sh && PYTHON="$venv/bin/python" run_pytest -n0 -m gpu tests/gpu "$@"
}

# What is committed, as a wheel in an environment that borrows the lock's packages, in a folder of its own.
release() (
    set -e
    folder="$(mktemp -d)"
    trap 'rm -rf "$folder"' EXIT
    python="$(realpath -s "$PYTHON")"
    mkdir "$folder/source" "$folder/work"
    git archive HEAD | tar x -C "$folder/source"
    "$python" -m pip wheel -q --no-deps --no-build-isolation "$folder/source" -w "$folder"
    "$python" -m venv --without-pip "$folder/venv"
    "$python" -c 'import site; print(site.getsitepackages()[0])' >"$(echo "$folder"/venv/lib/python3*/site-packages)/lock.pth"
    "$python" -m pip --python "$folder/venv/bin/python" install -q --no-deps "$folder"/*.whl
    "$python" -m pytest -n0 -m "" tests/house/test_documents.py tests/house/test_package.py
    cd "$folder/work"
    "$folder/venv/bin/medical-agent-rl" evaluate sql --gold
    "$folder/venv/bin/medical-agent-rl" train sql --ci-fast
    cd "$folder/source"
    ln -s "$(dirname "$(dirname "$python")")" .venv
    make train
    make demo
)

run_step() {
    local step="$1"
    shift
    case "$step" in
        lint) "$BIN/ruff" check . && "$BIN/ruff" format --check . ;;
        types) "$BIN/mypy" ;;
        imports) "$BIN/lint-imports" ;;
        unit) run_pytest "$@" ;;
        system) run_pytest -m "system and not engine and not nightly" "$@" ;;
        engine) run_pytest -n0 -m "engine and not nightly" "$@" ;;
        generated) draw_anew -m "not engine and not gpu" "$@" ;;
        trainings) run_pytest -n0 -m "engine and nightly" "$@" ;;
        faults) "$PYTHON" -m bench.faults ;;
        gpu) resolve_gpu "$@" ;;
        release) release ;;
        *) echo "check.sh: unknown step '$step'; the steps are lint, types, imports, ${TESTS[*]}, ${NIGHTLY[*]}, release." >&2; exit 2 ;;
    esac
}

failed=()
for step in "${steps[@]}"; do
    echo "== $step"
    began=$SECONDS
    run_step "$step" "$@" || failed+=("$step")
    echo "== $step took $((SECONDS - began)) s"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "check.sh: failed: ${failed[*]}" >&2
    exit 1
fi
echo "check.sh: all passed: ${steps[*]}"
