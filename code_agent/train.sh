#!/usr/bin/env bash
# The long run of the code agent on one 80 GB GPU: that of sql_agent/train.sh, its variables and flags too, with these files and lengths. Not run.
#
#   code_agent/train.sh
set -euo pipefail
export AGENT=code DATA="${DATA:-data/code}"
export MAX_PROMPT_LENGTH="${MAX_PROMPT_LENGTH:-4096}"
export MAX_RESPONSE_LENGTH="${MAX_RESPONSE_LENGTH:-12288}"
exec "$(dirname "${BASH_SOURCE[0]}")/../sql_agent/train.sh" "$@"
