"""A reward model: a classifier of one score for a question and a final answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForSequenceClassification, set_seed

from common.terminal import watched
from training.pairs.trainers import load_padded

SCORED_AT_ONCE = 16


@dataclass(frozen=True)
class Scorer:
    """A classifier of one score with its tokenizer. context: tokens that it takes at most."""

    model: Any
    tokenizer: Any
    context: int

    def tokens(self, prompt: str, response: str) -> list[int]:
        """Return the token ids of a question and an answer."""
        messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": response}]
        text = str(self.tokenizer.apply_chat_template(messages, tokenize=False))
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    @torch.no_grad()
    def scores(self, texts: Sequence[tuple[str, str]]) -> list[float]:
        """Return the raw score of each prompt and response."""
        self.model.eval()
        found: list[float] = []
        for at in watched(range(0, len(texts), SCORED_AT_ONCE), "scoring", "batches"):
            ids = [torch.tensor(self.tokens(*one)) for one in texts[at : at + SCORED_AT_ONCE]]
            batch = {
                "input_ids": pad_sequence(ids, True, self.tokenizer.pad_token_id),
                "attention_mask": pad_sequence([torch.ones_like(one) for one in ids], True, 0),
            }
            on_device = {name: tensor.to(self.model.device) for name, tensor in batch.items()}
            found += self.model(**on_device).logits.float().squeeze(-1).tolist()
        return found


def load_scorer(folder: Path, seed: int = 0) -> Scorer:
    """Return a folder's classifier. A language model gets a new head, drawn by the seed."""
    set_seed(seed)
    model, tokenizer = load_padded(folder, AutoModelForSequenceClassification, num_labels=1)
    model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return Scorer(model.to(device), tokenizer, int(positions or tokenizer.model_max_length))
