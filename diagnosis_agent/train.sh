#!/usr/bin/env bash
# The long run of the diagnosis agent on one 80 GB GPU: that of sql_agent/train.sh, its variables and flags too, with these files and lengths. Not run.
#
#   diagnosis_agent/train.sh
set -euo pipefail
export AGENT=diagnosis DATA="${DATA:-data/diagnosis}"
export MAX_PROMPT_LENGTH="${MAX_PROMPT_LENGTH:-3072}"
export MAX_RESPONSE_LENGTH="${MAX_RESPONSE_LENGTH:-8192}"
exec "$(dirname "${BASH_SOURCE[0]}")/../sql_agent/train.sh" "$@"
