"""What verl is given on a machine without an accelerator, in the place of its own parts."""

from __future__ import annotations

from sql_agent.agent import AGENT


def test_a_critic_gives_each_token_one_value_and_the_same_one_every_time() -> None:
    """With the dropout and two outputs of the folder's own config, PPO would learn from noise."""
    import torch
    from transformers import AutoConfig
    from verl.utils import model as verl_model

    import training.engine.verl_mends  # noqa: F401 (puts its own loader in verl's place)

    config = AutoConfig.from_pretrained(AGENT.model)
    config.num_labels, config.classifier_dropout = 1, 0.0  # as verl's engine asks for a critic
    critic = verl_model.load_valuehead_model(
        local_path=str(AGENT.model),
        torch_dtype=torch.float32,
        model_config=config,
        trust_remote_code=False,
    ).train()
    tokens = torch.arange(3, 19)[None]
    first, second = (critic(input_ids=tokens).logits for _ in range(2))
    assert first.shape == (1, 16, 1)
    assert first.equal(second)
