#!/usr/bin/env bash
# Stops the Ray head this project started, and no other, starts a new one and waits until it answers.
# Training needs none of this: without RAY_ADDRESS every run starts its own Ray. A head of its own is for many runs in a row.
#
#   ./restart_ray.sh             stop ours, start a head, wait; then `source runs/.ray/env` to use it
#   ./restart_ray.sh stop        stop ours only
#
# Variables: RAY_PORT (6379), RAY_CPUS and RAY_GPUS (what Ray counts; on a machine without a GPU one logical GPU, which verl asks for),
# RAY_WAIT (60 s), VENV (.venv).
#
# How ours are known: the head is started with a random word in its environment, which every process it starts inherits.
# Whoever reaches a Ray may run code in it, so this one asks for Ray's token (~/.ray/auth_token) and listens on 127.0.0.1 only. Ray 2.60
# replaces that address by the machine's own unless a variable, named after the systems where that is the default, says there is no
# cluster; runs that use the head need the same variables, which is what runs/.ray/env is for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

RAY_PORT="${RAY_PORT:-6379}"
ADDRESS="127.0.0.1:$RAY_PORT"
export RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 RAY_AUTH_MODE=token
RAY_WAIT="${RAY_WAIT:-60}"
RAY="${VENV:-.venv}/bin/ray"
STATE="runs/.ray" # token: the word; env: variables for runs that use the head; log: what it printed

fail() { printf 'restart_ray.sh: %s\n' "$1" >&2; exit "${2:-1}"; }

# Process ids whose environment holds the word; zombies have none, other users' cannot be read and are not ours.
ours() {
    { grep -lszx "MEDICAL_AGENT_RAY=$1" /proc/[0-9]*/environ || true; } | cut -d / -f 3
}

signal_ours() {
    local pid
    for pid in $(ours "$2"); do kill "-$1" "$pid" 2>/dev/null || true; done
}

# wait_gone WORD SECONDS
wait_gone() {
    local end=$((SECONDS + $2))
    while [ -n "$(ours "$1")" ]; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.5
    done
}

temporary_folder() { echo "/tmp/ray-$(id -u)-$1"; } # short: Ray's socket paths may have 107 characters

stop() {
    local token
    token="$(cat "$STATE/token" 2>/dev/null)" || { echo "No Ray of this project is recorded."; return; }
    signal_ours TERM "$token"
    if ! wait_gone "$token" 5; then
        signal_ours KILL "$token"
        wait_gone "$token" 10 || fail "these processes do not end: $(ours "$token" | tr '\n' ' ')"
    fi
    rm -rf "$(temporary_folder "$token")" "$STATE/token" "$STATE/env"
    echo "Stopped this project's Ray."
}

start() {
    local token gpus=() end
    [ -x "$RAY" ] || fail "$RAY is missing; run ./install.sh first." 2
    if (exec 3<>"/dev/tcp/127.0.0.1/$RAY_PORT") 2>/dev/null; then
        fail "port $RAY_PORT is in use by a program this project did not start; choose another: RAY_PORT=6380 ./restart_ray.sh"
    fi
    token="$(od -An -N6 -tx1 /dev/urandom | tr -d ' \n')"
    if [ -n "${RAY_GPUS:-}" ]; then
        gpus=(--num-gpus "$RAY_GPUS")
    elif ! nvidia-smi -L >/dev/null 2>&1; then
        gpus=(--num-gpus 1)
    fi
    [ -s ~/.ray/auth_token ] || "$RAY" get-auth-token --generate >/dev/null 2>&1 || fail "Ray could not write its token, ~/.ray/auth_token"
    mkdir -p "$STATE"
    echo "$token" >"$STATE/token"
    MEDICAL_AGENT_RAY="$token" RAY_USAGE_STATS_ENABLED=0 setsid "$RAY" start --head --block --node-ip-address 127.0.0.1 --port "$RAY_PORT" \
        --temp-dir "$(temporary_folder "$token")" --num-cpus "${RAY_CPUS:-32}" "${gpus[@]}" --include-dashboard false \
        --dashboard-agent-listen-port 0 </dev/null >"$STATE/log" 2>&1 &
    disown
    end=$((SECONDS + RAY_WAIT))
    until timeout 20 "$RAY" health-check --address "$ADDRESS" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$end" ] || [ -z "$(ours "$token")" ]; then
            tail -n 15 "$STATE/log" >&2
            stop >/dev/null
            fail "the head did not answer on $ADDRESS within $RAY_WAIT s (its last lines are above; all: $STATE/log)"
        fi
        sleep 0.5
    done
    echo "export RAY_ADDRESS=$ADDRESS RAY_AUTH_MODE=token RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0" >"$STATE/env"
    echo "Ray answers on $ADDRESS. To use it: source $STATE/env    To stop it: ./restart_ray.sh stop"
}

case "${1:-restart}" in
    restart) stop; start ;;
    stop) stop ;;
    *) fail "unknown word '$1'; use no argument, or stop." 2 ;;
esac
