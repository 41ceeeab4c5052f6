"""Ask one question through agent, tool and reward, at any OpenAI-compatible endpoint.

    .venv/bin/python sql_agent/sqlagent_test.py --base-url http://127.0.0.1:8000/v1 --model tiny
    .venv/bin/python sql_agent/sqlagent_test.py --base-url URL --model NAME --question "朵莎洛片怎么保存？"

The default is the first validation question. Questions of the data files are scored with their
gold, others without a reference. The key is OPENAI_API_KEY (environment or .env), the database
DATABASE_URL. Exit codes: 0 done, 1 the endpoint, database or judge failed, 2 wrong usage.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.command import Failure, new_parser, run_command
from common.llm.endpoint import without_secrets
from common.settings import load_settings, reveal
from episodes.episode import Scored
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, endpoint_elsewhere
from sql_agent.agent import AGENT
from sql_agent.task import SqlTask, task_of

LONGEST_REPLY = 256  # tokens


def find_task(question: str | None) -> SqlTask:
    """Return the row with this question (None: the first to validate), or a task without reference."""
    for split in ("val", "test", "train"):
        for row in AGENT.rows(AGENT.splits[split]):
            if question in (None, row["question"]):
                return task_of(row)
    return SqlTask(id="typed", question=question or "")


def show(scored: Scored) -> None:
    """Print the transcript, then the reward's terms."""
    episode = scored.episode
    for message in episode.messages:
        print(f"--- {message['role']}")
        for tool_call in message.get("tool_calls", []):
            print(f"{tool_call['function']['name']}({tool_call['function']['arguments']})")
        if message["content"]:
            print(message["content"])
    print(f"--- task {scored.task.id}, {episode.stop_reason} after {episode.turns} turns")
    print(f"gold answer: {scored.task.reference or 'none'}")
    for name, value in scored.reward.terms.items():
        print(f"{name:<20}{value:.3f}")
    total = scored.reward.total
    print(f"unscored: {scored.reward.unscored}" if total is None else f"{'total':<20}{total:.3f}")


def run(argv: Sequence[str] | None) -> int:
    """Play and show one question, and return the exit code. Raises Failure: it cannot be played."""
    settings = load_settings()
    parser = new_parser(__doc__)
    add = parser.add_argument
    url = settings.openai_base_url
    add("--base-url", default=url, help="ending in /v1; default: OPENAI_BASE_URL")
    add("--model", required=True, help="the name the endpoint serves the model under")
    add("--question", help="default: the first validation question")
    arguments = parser.parse_args(argv)
    if not arguments.base_url:
        parser.error("no endpoint: give --base-url, or set OPENAI_BASE_URL, a server ending in /v1")
    if arguments.question is not None and not arguments.question.strip():
        parser.error("--question is empty")
    endpoint = endpoint_elsewhere(
        f"openai/{arguments.model}",
        arguments.base_url,
        reveal(settings.openai_api_key),
        temperature=settings.temperature,
        max_tokens=LONGEST_REPLY,
    )
    environment = AGENT.open(settings, {})
    task = find_task(arguments.question)
    policy = ChatPolicy(endpoint, settings.max_turns)
    episode = environment.play(task, policy)
    scored = asyncio.run(play(environment, task, episode, policy, settings.episode_timeout))
    if scored.detail:
        raise Failure(
            f"{scored.detail} ({scored.reward.unscored}); is "
            f"{without_secrets(arguments.base_url)} running and serving {arguments.model!r}?"
        )
    show(scored)
    print(f"judge: {environment.description()['judge']}")
    return 0 if scored.reward.unscored in (None, "no_reference") else 1


def main(argv: Sequence[str] | None = None) -> int:
    return run_command("sqlagent_test", lambda: run(argv))


if __name__ == "__main__":
    sys.exit(main())
