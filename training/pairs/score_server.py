"""Serve a reward model: POST /score {"prompt", "response"} -> {"score"}, a raw number.

A text that the model cannot read whole is refused (422) and never cut: its episode is unscored.
"""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, ConfigDict

from common.access import Guard
from common.command import UsageError
from common.connections import Server
from training.pairs.scorer import Scorer, load_scorer

HOST = "127.0.0.1"
MOST_BYTES = 1_000_000  # of a request
FACTS = "reward_model.json"
SCALE = "reward_scale.json"


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
