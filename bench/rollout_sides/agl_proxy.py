"""agent-lightning's LLM proxy as it comes: its middlewares, its OpenTelemetry spans.

python -m bench.rollout_sides.agl_proxy PORT STORE_ADDRESS MODEL_NAME MODEL SERVER
"""

from __future__ import annotations

import asyncio
import logging
import sys

from agentlightning import LightningStoreClient, LLMProxy
from agentlightning.utils.server_launcher import PythonServerLauncherArgs

from training.direct import HEALTH


async def serve(port: int, store: str, name: str, model: str, server: str) -> None:
    """Serve until the process is stopped."""
    proxy = LLMProxy(
        store=LightningStoreClient(store),
        model_list=[
            {"model_name": name, "litellm_params": {"model": f"hosted_vllm/{model}", "api_base": f"{server}/v1"}}
        ],
        launcher_args=PythonServerLauncherArgs(
            host="127.0.0.1",
            port=port,
            launch_mode="thread",
            healthcheck_url=HEALTH,
            startup_timeout=90.0,
            log_level=logging.WARNING,
        ),
    )
    await proxy.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), *sys.argv[2:6]))
