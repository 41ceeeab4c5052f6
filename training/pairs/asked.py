"""The flags that `training.preferences` and `training.reward_model` share, and their pairs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from common.command import UsageError, number, positive
from episodes import registry
from episodes.agent import Agent
from training.pairs.pair import LeftOut, Pair, Side, pairs_of_episodes, pairs_of_file

MARGIN = 0.2
SHARE = number(float, lambda value: 0 < value <= 1, "above 0, at most 1")


def add_flags(parser: argparse.ArgumentParser, lr: float) -> None:
    add = parser.add_argument
    names = registry.names()
    add("agent", choices=names, metavar="AGENT", help=", ".join(names))
    source = parser.add_mutually_exclusive_group(required=True)
    episodes = "folders of evaluations or runs, or files of episodes: best against worst of a task"
    source.add_argument("--episodes", type=Path, nargs="+", metavar="PLACE", help=episodes)
    pairs = "JSON lines of prompt, chosen, rejected"
    source.add_argument("--pairs", type=Path, metavar="FILE", help=pairs)
    add("--out", type=Path, required=True, help="folder for the model")
    add("--force", action="store_true", help="replace --out, and begin anew")
    margin = f"least difference of two episodes' scores; default: {MARGIN:g}"
    add("--margin", type=SHARE, default=MARGIN, help=margin)
    add("--epochs", type=positive(float), default=1.0, help="default: 1")
    add("--lr", type=positive(float), default=lr, help=f"learning rate; default: {lr:g}")
    add("--batch-size", type=positive(int), default=8, help="default: 8")
    rank = "train an adapter of this rank and merge it; default: train all weights"
    add("--lora-rank", type=positive(int), metavar="RANK", help=rank)
    add("--seed", type=int, default=0)


def pairs_asked(
    agent: Agent, arguments: argparse.Namespace, answers: bool = False
) -> tuple[list[Pair], LeftOut]:
    """Return the pairs that the flags name, checked, and what was left out. Raises UsageError.

    answers: of the questions and final answers alone.
    """
    left_out = LeftOut()
    if arguments.pairs:
        found = pairs_of_file(arguments.pairs, agent)
    else:
        found, left_out = pairs_of_episodes(arguments.episodes, agent, arguments.margin)
    tested = {str(row["id"]) for row in agent.rows(agent.splits["test"])}
    kept: dict[str, Pair] = {}
    for pair in map(answers_of, found) if answers else found:
        key = repr((pair.chosen.messages, pair.rejected.messages))
        reason = problem_of(pair, tested, answers) or ("there already" if key in kept else None)
        if reason:
            left_out[reason] += 1
        else:
            kept[key] = pair
    if not kept:
        raise UsageError(f"no pair is left to learn from: {counted(left_out) or 'there were none'}")
    pairs = [*kept.values()]
    tasks = len({pair.task for pair in pairs})
    print(
        f"{len(pairs)} pairs of {tasks} tasks; the longer side wins {longer_wins(pairs):.0%}",
        file=sys.stderr,
    )
    if left_out:
        print(f"left out: {counted(left_out)}", file=sys.stderr)
    return pairs, left_out


def answers_of(pair: Pair) -> Pair:
    """Return the pair of the question and the final answers, as a judge reads them."""

    question = {"role": "user", "content": pair.question}
    sides = []
    for side in (pair.chosen, pair.rejected):
        answer = side.answer.strip()
        sides.append(Side([question, {"role": "assistant", "content": answer}], answer))
    chosen, rejected = sides
    return Pair(pair.task, pair.question, chosen, rejected)


def problem_of(pair: Pair, tested: set[str], answers: bool = False) -> str | None:
    """Return why a pair cannot be learned from, or None. tested: ids of the agent's test tasks.

    answers: it is of final answers alone, of which the longer one may be right for what it adds.
    """
    chosen = pair.chosen
    rejected = pair.rejected
    texts = [" ".join("\n".join(side.replies).split()) for side in (chosen, rejected)]
    shorter, longer = sorted(texts, key=len)
    if pair.task in tested:
        return "task of the test file"
    if chosen.prompt != rejected.prompt:
        return "two different prompts"
    if not shorter:
        return "one side is empty"
    if shorter == longer:
        return "both sides are equal"
    if longer.startswith(shorter) and not answers:
        return "they differ in length alone"
    return None


def longer_wins(pairs: Sequence[Pair]) -> float:
    """Return the share of pairs whose chosen side is the longer one. Equal ones count half."""
    won = 0.0
    for pair in pairs:
        if pair.chosen.length == pair.rejected.length:
            won += 0.5
        elif pair.chosen.length > pair.rejected.length:
            won += 1
    return won / len(pairs)


def counted(left_out: LeftOut) -> str:
    """Return the reasons with their numbers in words, the commonest first."""
    return "; ".join(f"{reason}: {count}" for reason, count in left_out.most_common())
