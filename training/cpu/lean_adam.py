"""AdamW that needs less memory, for a large model beside vLLM in main memory."""

from typing import Any

import torch


class LeanAdamW(torch.optim.AdamW):
    """AdamW with first moments in bfloat16. It drops each gradient that it has used.

    A first moment moves by a tenth of its distance from the gradient, far more than bfloat16
    rounds. The second moves by a thousandth, which it would lose, and stays in 32 bit.
    """

    param_groups: list[dict[str, Any]]

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        groups = self.param_groups
        for group in groups:
            self.param_groups = [group]
            weights = group["params"]
            for weight in weights:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if state:
                    state["exp_avg"] = state["exp_avg"].float()
                group["params"] = [weight]  # one at a time, so that only its moment is in 32 bit
                super().step()
                state["exp_avg"] = state["exp_avg"].bfloat16()
                weight.grad = None
            group["params"] = weights
        self.param_groups = groups
