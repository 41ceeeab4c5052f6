#!/usr/bin/env bash
# Store, runners and trainer as three processes, as in production, here on one machine (make train-external).
# On several machines the same three commands run with the store's and the proxy's real addresses; see docs/settings.md.
#
#   AGENT=sql bash training/external.sh [flags and key=value of train_sql_agent.py; default: --ci-fast]
#
# All three need the same AGL_TOKEN; where none is set, one is drawn for this run.
set -euo pipefail
case "${1:-}" in
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit
        ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON="${PYTHON:-.venv/bin/python}"
TRAIN="train_${AGENT:-sql}_agent.py"
PORT="${STORE_PORT:-4747}"
STORE="http://127.0.0.1:$PORT"
[ $# -gt 0 ] || set -- --ci-fast
export AGL_TOKEN="${AGL_TOKEN:-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')}"

pids=()
stop() {
    trap - EXIT INT TERM
    for pid in "${pids[@]}"; do kill -INT "$pid" 2>/dev/null || true; done
    wait || true
}
trap stop EXIT
trap 'exit 130' INT TERM

# Job control gives each its own process group, so that stopping one stops its children and nothing else.
set -m
"$PYTHON" -m training.store serve --port "$PORT" &
pids+=($!)
for _ in $(seq 60); do
    (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && break
    kill -0 "${pids[0]}" 2>/dev/null || exit 1
    sleep 0.5
done

export AGL_MANAGED_STORE=0
AGL_CURRENT_ROLE=runner "$PYTHON" "$TRAIN" --llm-proxy --external-store-address "$STORE" "$@" &
pids+=($!)
set +m
AGL_CURRENT_ROLE=algorithm "$PYTHON" "$TRAIN" --llm-proxy --external-store-address "$STORE" "$@"
