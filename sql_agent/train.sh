#!/usr/bin/env bash
# The long run: the SQL agent on one 80 GB GPU. Main parameters first; what follows the script's name is passed on and wins.
# The values are those of the GPU preset in training/setup/verl.toml and presets.py, where the reasons stand; not run.
#
#   sql_agent/train.sh
#   TRAIN_BATCH_SIZE=4 MODEL=/models/Qwen3-1.7B sql_agent/train.sh --run-dir runs/mine --resume auto
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

AGENT="${AGENT:-sql}" # its siblings say another
MODEL="${MODEL:-${BASE_MODEL:-Qwen/Qwen3-0.6B}}"
TRAIN_FILE="${TRAIN_FILE:-${DATA:-data}/train.parquet}"
VAL_FILE="${VAL_FILE:-${DATA:-data}/val.parquet}"
N_GPUS="${N_GPUS:-1}"
N_RUNNERS="${N_RUNNERS:-}"                         # processes that play; empty: as many as the batch needs
TRAIN_BATCH_SIZE="${TRAIN_BATCH_SIZE:-16}"         # questions a step
SAMPLES="${SAMPLES:-8}"                            # episodes a question: the group GRPO compares
MAX_PROMPT_LENGTH="${MAX_PROMPT_LENGTH:-2048}"     # tokens
MAX_RESPONSE_LENGTH="${MAX_RESPONSE_LENGTH:-8192}" # tokens of an episode after its prompt, the tool's included
LEARNING_RATE="${LEARNING_RATE:-1e-6}"
EPOCHS="${EPOCHS:-2}"
SAVE_EVERY="${SAVE_EVERY:-20}"                     # steps
TEST_EVERY="${TEST_EVERY:-20}"                     # steps

exec .venv/bin/python "train_${AGENT}_agent.py" --llm-proxy --device cuda \
    --model "$MODEL" --train-file "$TRAIN_FILE" --val-file "$VAL_FILE" \
    --n-gpus "$N_GPUS" ${N_RUNNERS:+--n-runners "$N_RUNNERS"} \
    "data.train_batch_size=$TRAIN_BATCH_SIZE" \
    "data.max_prompt_length=$MAX_PROMPT_LENGTH" \
    "data.max_response_length=$MAX_RESPONSE_LENGTH" \
    "actor_rollout_ref.rollout.max_model_len=$((MAX_PROMPT_LENGTH + MAX_RESPONSE_LENGTH))" \
    "actor_rollout_ref.rollout.n=$SAMPLES" \
    "actor_rollout_ref.actor.ppo_mini_batch_size=$TRAIN_BATCH_SIZE" \
    "actor_rollout_ref.actor.optim.lr=$LEARNING_RATE" \
    "trainer.total_epochs=$EPOCHS" \
    "trainer.save_freq=$SAVE_EVERY" \
    "trainer.test_freq=$TEST_EVERY" \
    "$@"
