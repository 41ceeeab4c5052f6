#!/usr/bin/env bash
# Stops the Ray this project started on this machine, and no other, starts a new one and waits until it answers.
# Training on one machine needs none of this: without RAY_ADDRESS every run starts its own Ray. A head of its own is for many runs in a
# row, and for runs on several machines (docs/gpu.md).
#
#   ./restart_ray.sh                              a head for runs on this machine; then `source runs/.ray/env` to use it
#   ./restart_ray.sh --host 10.0.0.1              a head that other machines join, at that address of this machine
#   ./restart_ray.sh --address 10.0.0.1:6379      a worker of that head; --host ADDRESS where Ray would take another of this machine's
#   ./restart_ray.sh stop                         stop ours only
#
# Variables: RAY_PORT (6379), RAY_CPUS and RAY_GPUS (what Ray counts; on a machine without a GPU one logical GPU, which verl asks for),
# RAY_WAIT (60 s), VENV (.venv).
#
# How ours are known: Ray is started with a random word in its environment, which every process it starts inherits.
# Whoever reaches a Ray may run code in it, so this one asks for Ray's token (~/.ray/auth_token, the same file on every machine) and listens
# on 127.0.0.1 only, unless told a --host. Ray 2.60 replaces that address by the machine's own unless a variable, named after the systems
# where that is the default, says there is no cluster; runs that use the head need the same variables, which is what runs/.ray/env is for.
set -euo pipefail
case "${1:-}" in
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit
        ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")"

RAY_PORT="${RAY_PORT:-6379}"
RAY_WAIT="${RAY_WAIT:-60}"
RAY="${VENV:-.venv}/bin/ray"
TOKEN_FILE=~/.ray/auth_token
ENV_FILE="runs/.ray/env"           # variables for runs that use the head
STATE="runs/.ray/$(uname -n)"      # of this machine, in a folder that machines may share; token: the word; log: what Ray printed
export RAY_AUTH_MODE=token

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
    if grep -qs "$token" "$ENV_FILE"; then rm "$ENV_FILE"; fi
    rm -rf "$(temporary_folder "$token")" "$STATE/token"
    echo "Stopped this project's Ray."
}

answers() { (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null; } # HOST:PORT

# start ROLE HOST ADDRESS: a head at ADDRESS, or a worker of the head there; HOST is this machine's own
start() {
    local role="$1" host="$2" address="$3" token end options=(--num-cpus "${RAY_CPUS:-32}")
    [ -x "$RAY" ] || fail "$RAY is missing; run ./install.sh first." 2
    if [ -n "${RAY_GPUS:-}" ]; then
        options+=(--num-gpus "$RAY_GPUS")
    elif ! nvidia-smi -L >/dev/null 2>&1; then
        options+=(--num-gpus 1)
    fi
    if [ "$role" = head ]; then
        answers "$address" && fail "port $RAY_PORT is in use by a program this project did not start; choose another: RAY_PORT=6380 ./restart_ray.sh"
        [ -s "$TOKEN_FILE" ] || (umask 077 && "$RAY" get-auth-token --generate) >/dev/null 2>&1 || fail "Ray could not write its token, $TOKEN_FILE"
        options+=(--head --port "$RAY_PORT" --include-dashboard "$JOBS")
    else
        [ -s "$TOKEN_FILE" ] || fail "$TOKEN_FILE is missing; copy it from the machine of the head"
        answers "$address" || fail "no Ray answers on $address; start it there: ./restart_ray.sh --host ${address%:*}"
        options+=(--address "$address")
    fi
    token="$(od -An -N6 -tx1 /dev/urandom | tr -d ' \n')"
    mkdir -p "$STATE"
    echo "$token" >"$STATE/token"
    MEDICAL_AGENT_RAY="$token" RAY_USAGE_STATS_ENABLED=0 setsid "$RAY" start --block ${host:+--node-ip-address "$host"} "${options[@]}" \
        --temp-dir "$(temporary_folder "$token")" --dashboard-agent-listen-port 0 </dev/null >"$STATE/log" 2>&1 &
    disown
    end=$((SECONDS + RAY_WAIT))
    until timeout 20 "$RAY" health-check --address "$address" >/dev/null 2>&1 && grep -q "Ray runtime started" "$STATE/log"; do
        if [ "$SECONDS" -ge "$end" ] || [ -z "$(ours "$token")" ]; then
            tail -n 15 "$STATE/log" >&2
            stop >/dev/null
            fail "this Ray $role ($address) did not start within $RAY_WAIT s (its last lines are above; all: $STATE/log)"
        fi
        sleep 0.5
    done
    [ "$role" = head ] || { echo "Joined the Ray on $address. To leave it: ./restart_ray.sh stop"; return; }
    printf '%s\n' "export RAY_ADDRESS=$address RAY_AUTH_MODE=token${CLUSTER:+ $CLUSTER}" "# written by $token" >"$ENV_FILE"
    echo "Ray answers on $address. To use it: source $ENV_FILE    To stop it: ./restart_ray.sh stop"
}

host="" address=""
while [ $# -gt 0 ]; do
    case "$1" in
        stop) stop; exit ;;
        --host | --address)
            [ -n "${2:-}" ] || fail "$1 needs a value; see the top of this file" 2
            if [ "$1" = --host ]; then host="$2"; else address="$2"; fi
            shift 2
            ;;
        *) fail "unknown word '$1'; use no argument, --host, --address, or stop." 2 ;;
    esac
done
[ -z "$address" ] || [[ "$address" == *:* ]] || fail "--address $address: expected HOST:PORT, such as 10.0.0.1:6379" 2
JOBS=true # `ray job submit` asks the dashboard, on 127.0.0.1:8265 of the head
if [ -z "$host$address" ]; then
    JOBS=false
    host=127.0.0.1
    export RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0
    CLUSTER="RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0"
else
    unset RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER # of a head that was for this machine alone
fi
stop
if [ -n "$address" ]; then start worker "$host" "$address"; else start head "$host" "$host:$RAY_PORT"; fi
