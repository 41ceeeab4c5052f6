# Two images from the two locks; each runs ./install.sh, the same steps as on a machine without Docker.
#
#   docker build --target cpu -t medical-agent-rl:cpu .
#   docker run --rm --shm-size=4g -v "$PWD/runs:/app/runs" medical-agent-rl:cpu          (-e AGENT=... for another than sql)
#
#   docker compose up --build                          store, runners, trainer and PostgreSQL apart: compose.yaml
#
#   docker build --target gpu -t medical-agent-rl:gpu .          (lock resolved, image not run)
#   docker run --rm --gpus '"device=0"' --shm-size=16g --network host \
#       -v "$PWD/runs:/app/runs" -v "$HOME/.cache/huggingface:/cache/huggingface" -v "$HOME/.cache/vllm:/cache/vllm" \
#       --env-file .env medical-agent-rl:gpu python train_sql_agent.py --n-gpus 1
#
# device=0 is one chosen GPU; shared memory is where Ray and NCCL exchange tensors; the host's network lets the store and the proxy be
# reached from other machines; the mounts keep downloaded models and vLLM's compiled kernels between runs. The user in the image has
# id 1000: the mounted folders must be writable for it, or add --user "$(id -u)".

# The digest of the image that was checked belongs here, as python:3.11-slim-trixie@sha256:...: none is known where this file
# was made, which reached no registry. `docker buildx imagetools inspect python:3.11-slim-trixie` shows it;
# docker build --build-arg PYTHON_IMAGE=python:3.11-slim-trixie@sha256:... pins it.
ARG PYTHON_IMAGE=python:3.11-slim-trixie
FROM ${PYTHON_IMAGE} AS base
ENV AGENT=sql PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    HOME=/cache USER=app LOGNAME=app HF_HOME=/cache/huggingface VLLM_CACHE_ROOT=/cache/vllm \
    PATH=/app/.venv/bin:$PATH
WORKDIR /app
# USER, LOGNAME: torch asks for the user's name, and a number given with --user has none. libnuma1: vLLM's CPU build loads it. bubblewrap: the code agent's programs run in it; docs/safety.md says what the container must be allowed.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap libnuma1 && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 1000 --home-dir /cache --create-home app \
    && mkdir -p /app/runs /app/outputs /cache/huggingface /cache/vllm \
    && chown -R app:app /app /cache && chmod -R a+rwX /cache
COPY --chown=app:app install.sh ./
COPY --chown=app:app requirements ./requirements
# A container that serves an agent is healthy while its model answers; one that trains listens on no such port.
HEALTHCHECK --interval=30s --timeout=10s --start-period=600s CMD ["python", "-c", "import socket, urllib.request as u; \
    socket.socket().connect_ex(('127.0.0.1', 8010)) or u.urlopen('http://127.0.0.1:8010/health', timeout=8)"]

FROM base AS cpu
USER 1000
RUN ./install.sh
COPY --chown=app:app . .
CMD ["sh", "-c", "exec python train_${AGENT}_agent.py --ci-fast"]

FROM base AS gpu
# triton compiles a small C file for the driver it meets; Python.h comes with the image of Python.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 1000
RUN DEVICE=gpu ./install.sh
COPY --chown=app:app . .
CMD ["sh", "-c", "exec python train_${AGENT}_agent.py"]
