"""Make scored rollouts the batch that verl trains on: put their tokens into its TransferQueue.

Keys are `{group}_{session}_{i}`. GRPO takes one advantage a session, from its last sequence, so a
session of several sequences does not weigh more in its group.
"""

from typing import Any

import torch
import transfer_queue as tq
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from training.engine.kept_sample import Finished
from training.engine.records import RolloutRecord
from training.engine.trajectories import TokenSequence


def put_sequences(
    scored: list[Finished], prompts: dict[str, dict[str, Any]], partition: str
) -> None:
    """Put all sequences of scored rollouts with one request. `prompts` is verl's row by group.

    verl sums in this order, which must not depend on which rollout ended first.
    """
    groups = {uid: number for number, uid in enumerate(prompts)}

    def place(finished: Finished) -> tuple[int, list[list[int]]]:
        record, trajectory = finished
        tokens = [one.prompt_ids + one.response_ids for one in trajectory.sequences]
        return groups[record.group], tokens

    keys = []
    fields = []
    tags = []
    for record, trajectory in sorted(scored, key=place):
        for number, sequence in enumerate(trajectory.sequences):
            keys.append(f"{record.key}_{number}")
            fields.append(_fields(sequence, record, prompts[record.group]))
            prompt_len = len(sequence.prompt_ids)
            response_len = len(sequence.response_ids)
            tag = {
                "status": "success",
                "prompt_len": prompt_len,
                "response_len": response_len,
                "seq_len": prompt_len + response_len,
                "global_steps": record.step,
                **_weights_span(record),
            }
            tags.append(tag)
    if keys:
        columns = list_of_dict_to_tensordict(fields)
        tq.kv_batch_put(keys=keys, partition_id=partition, fields=columns, tags=tags)


def _fields(
    sequence: TokenSequence, record: RolloutRecord, prompt: dict[str, Any]
) -> dict[str, Any]:
    output = AgentLoopOutput(
        prompt_ids=sequence.prompt_ids,
        response_ids=sequence.response_ids,
        response_mask=sequence.mask,
        response_logprobs=sequence.log_probs,
        reward_score=record.reward,
        num_turns=record.turns,
        metrics=AgentLoopMetrics(),
        extra_fields={"reward_extra_info": dict(record.terms), **_weights_span(record)},
    ).as_dict()
    input_ids = torch.cat([output["prompts"], output["responses"]])
    return {
        **output,
        **prompt,
        "session_id": record.sample,
        "loss_mask": output["response_mask"],
        "input_ids": input_ids,
        "position_ids": torch.arange(len(input_ids)),
        "multi_modal_inputs": {},
    }


def _weights_span(record: RolloutRecord) -> dict[str, int]:
    """Return the oldest and the newest weights that played it, by the step that made them."""
    made = record.step - 1 if record.mode == "train" else record.step
    return {"min_global_steps": made, "max_global_steps": made}
