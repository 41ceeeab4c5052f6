"""A reward model: a classifier of one score for a question and a final answer, and its server.

POST /score {"prompt", "response"} -> {"score"}, a raw number. A text that the model cannot read
whole is refused (422) and never cut: its episode is unscored.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForSequenceClassification, set_seed

from common.access import Guard
from common.command import UsageError
from common.connections import Server
from common.terminal import watched
from training.pairs.trainers import load_padded

SCORED_AT_ONCE = 16
HOST = "127.0.0.1"
MOST_BYTES = 1_000_000  # of a request
FACTS = "reward_model.json"
SCALE = "reward_scale.json"


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


class Asked(BaseModel):
    model_config = ConfigDict(strict=True)
    prompt: str
    response: str


def build(scorer: Scorer) -> FastAPI:
    """Return the application, which scores one answer at a time."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    one_at_a_time = asyncio.Lock()

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/score")
    async def score(asked: Asked) -> dict[str, float]:
        tokens = len(scorer.tokens(asked.prompt, asked.response))
        if tokens > scorer.context:
            seen = f"{tokens} tokens; the reward model reads {scorer.context} at most"
            raise HTTPException(422, seen)
        async with one_at_a_time:
            texts = [(asked.prompt, asked.response)]
            (found,) = await asyncio.to_thread(scorer.scores, texts)
        return {"score": found}

    return app


def serve_scores(folder: Path, port: int) -> None:
    """Answer until Ctrl-C. Port 0 is a free one. Raises UsageError, OSError."""
    if not (folder / FACTS).is_file():
        raise UsageError(
            f"--reward-model {folder} has no {FACTS}; give a folder of training.reward_model"
        )
    scorer = load_scorer(folder)
    with socket.create_server((HOST, port)) as listener:
        address = f"http://{HOST}:{listener.getsockname()[1]}/score"
        scale = f" REWARD_SCALE={(folder / SCALE).resolve()}" if (folder / SCALE).is_file() else ""
        print(f"serves {folder}; set  REWARD_MODEL_URL={address}{scale}", flush=True)
        config = uvicorn.Config(Guard(build(scorer), None, MOST_BYTES), log_level="warning")
        Server(config).run(sockets=[listener])
