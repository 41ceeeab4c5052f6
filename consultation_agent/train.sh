#!/usr/bin/env bash
# The long run of the consultation agent on one 80 GB GPU: that of sql_agent/train.sh, its variables and flags too, with these files and lengths. Not run.
#
#   consultation_agent/train.sh
set -euo pipefail
export AGENT=consultation DATA="${DATA:-data/consultation}"
export MAX_PROMPT_LENGTH="${MAX_PROMPT_LENGTH:-2048}"
export MAX_RESPONSE_LENGTH="${MAX_RESPONSE_LENGTH:-6144}"
exec "$(dirname "${BASH_SOURCE[0]}")/../sql_agent/train.sh" "$@"
