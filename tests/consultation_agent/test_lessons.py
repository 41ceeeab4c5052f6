"""What the consultation agent's tiny model is made from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest

from consultation_agent import lessons as recipe
from consultation_agent.agent import AGENT
from consultation_agent.doctor_questions import SAID, asked_for
from consultation_agent.lessons import WORDINGS, lessons
from consultation_agent.prompts import load_prompts
from consultation_agent.protocol import Conclusion, Malformed, Question, read_reply
from consultation_agent.rehearsal import baseline_episode, best_match
from consultation_agent.task import task_of
from data.conditions.condition_types import Phrase
from data.conditions.consultation_cases import draw_cases
from data.conditions.speech import Speech
from data.conditions.table import load_tables
from episodes.episode import Conversation
from tests.consultation_agent.cases import tasks

FEW = {"train": 3, "val": 2, "test": 4}  # rows drawn before the lessons


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "ROWS", FEW)


def replies(one: Conversation) -> list[Question | Conclusion | Malformed]:
    return [
        read_reply(message["content"]) for message in one.messages if message["role"] == "assistant"
    ]


def learned(one: Conversation) -> list[Question | Conclusion | Malformed]:
    return [said for said, learn in zip(replies(one), one.learn, strict=True) if learn]


def plain(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Patients who speak as the record patient does, and flawed demonstrations of one kind."""
    monkeypatch.setattr(recipe, "SHARES", dict.fromkeys(recipe.SHARES, 0))
    monkeypatch.setattr(recipe, "FLAWS", {kind: 100})
    monkeypatch.setattr(recipe, "BUDGETS", (6,))


def test_what_fits_best_is_told_by_the_symptoms() -> None:
    """A guess at the end of the budget goes by what was asked so far."""
    asked = [task for task in tasks() if task.symptoms]
    guesses = [best_match(task, task.symptoms) for task in asked]
    right = sum(
        guess is not None and guess.diagnosis == task.reference
        for guess, task in zip(guesses, asked, strict=True)
    )
    assert right > 0.9 * len(asked)


def test_a_right_consultation_asks_what_distinguishes_and_names_the_condition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain(monkeypatch, "right")
    rows = draw_cases(load_tables(), {**FEW, "lessons": 30}, seed=0)["lessons"]
    for row, one in zip(rows, lessons(30, 0, Random(1)).right, strict=True):
        *questions, end = replies(one)
        complaint, extra = row["prompt"][0]["content"], row["extra_info"]
        assert [
            asked_for(question.text, complaint)
            for question in questions
            if isinstance(question, Question)
        ] == [[i] for i in extra["distinguishing"]]
        assert isinstance(end, Conclusion)
        truth = row["reward_model"]["ground_truth"]
        assert (end.diagnosis, True) == (
            truth["diagnosis"],
            truth["recommendation"].startswith(end.recommendation),
        )


def test_right_lessons_teach_no_mistake_and_keep_to_the_budget() -> None:
    made = lessons(150, 0, Random(2)).right
    assert not any(isinstance(said, Malformed) for one in made for said in learned(one))
    assert any(isinstance(said, Malformed) for one in made for said in replies(one))
    for one in made:
        budget = re.search(r"共(\d)", one.messages[1]["content"])
        assert budget
        assert len(one.learn) <= int(budget[1])
        roles = [message["role"] for message in one.messages]
        assert roles == ["system", *["user", "assistant"] * len(one.learn)]
        assert isinstance(replies(one)[-1], Conclusion)


def what_patients_say() -> list[Phrase]:
    tables = load_tables()
    values = (value for facet in tables.facets.values() for value in facet.values.values())
    return [*tables.complaints.values(), *tables.symptoms.values(), *values]


def test_no_patient_speaks_in_wordings_that_are_kept_for_the_test_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain(monkeypatch, "right")
    monkeypatch.setitem(recipe.SHARES, "further", 50)
    speech = Speech(0, Random(0))
    phrases = what_patients_say()
    lists = [(one.zh, texts) for one in phrases for texts in (one.lay, one.longer) if texts]
    kept, others = (
        {text for name, texts in lists for text in speech.allowed(name, texts, wording)}
        for wording in ("unseen", "seen")
    )
    kept -= {text for text in kept if any(text in other for other in others)}
    kept -= {phrase.zh for phrase in phrases}
    assert len(kept) > 300
    told = "\n".join(
        message["content"]
        for one in lessons(200, 0, Random(1)).right
        for message in one.messages[1:]
    )
    assert [text for text in kept if text in told] == []


def test_everything_a_patient_may_say_has_further_wordings_that_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain(monkeypatch, "right")
    further = [*recipe.further_wordings(load_tables())]
    assert [phrase for phrase, _ in further] == what_patients_say()

    def told() -> int:
        """Return how many further wordings stand in a hundred lessons."""
        text = str([one.messages for one in lessons(100, 0, Random(1)).right])
        return sum(one in text for _, texts in further for one in texts)

    few = told()
    monkeypatch.setitem(recipe.SHARES, "further", 100)
    assert told() > few + 200


@pytest.mark.parametrize(
    ("flaw", "questions"), [("at_once", {0}), ("aside", {1, 2}), ("early", {1})]
)
def test_a_flaw_ends_too_soon(
    flaw: str, questions: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(monkeypatch, flaw)
    made = lessons(0, 40, Random(1)).flawed
    assert {len(replies(one)) - 1 for one in made} == questions
    assert all(all(one.learn) and isinstance(replies(one)[-1], Conclusion) for one in made)


def test_what_is_asked_beside_the_point_distinguishes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain(monkeypatch, "aside")
    rows = draw_cases(load_tables(), {**FEW, "lessons": 400}, seed=0)["lessons"]
    needed = [{*row["extra_info"]["distinguishing"]} for row in rows]
    assert any(items & {*recipe.ASIDE} for items in needed)
    for items, one in zip(needed, lessons(0, 400, Random(1)).flawed, strict=True):
        asked = [said.text for said in replies(one) if isinstance(said, Question)]
        assert not items & {item for text in asked for item in asked_for(text, "")}


def test_who_asks_nothing_names_what_the_complaint_alone_makes_likely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Naming what only questions tell would be learned as guessing, and earn what asking should."""
    plain(monkeypatch, "at_once")
    rows = draw_cases(load_tables(), {**FEW, "lessons": 40}, seed=0)["lessons"]
    named = {
        (row["extra_info"]["complaint"], end.diagnosis)
        for row, one in zip(rows, lessons(0, 40, Random(1)).flawed, strict=True)
        if isinstance(end := replies(one)[-1], Conclusion)
    }
    assert len(named) == len({complaint for complaint, _ in named})


def test_a_malformed_reply_is_learned_and_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    plain(monkeypatch, "malformed")
    for one in lessons(0, 30, Random(1)).flawed:
        (at,) = [at for at, said in enumerate(learned(one)) if isinstance(said, Malformed)]
        assert not isinstance(replies(one)[at + 1], Malformed)


def test_every_other_wording_asks_for_its_item() -> None:
    tables = load_tables()
    assert WORDINGS.keys() == SAID["questions"].keys()
    asked = {name: words for name, words in WORDINGS.items() if name != "symptom"}
    asked |= {
        name: WORDINGS["symptom"].format(word=one.ask[0]) for name, one in tables.symptoms.items()
    }
    assert {name: asked_for(words, "") for name, words in asked.items()} == {
        name: [name] for name in asked
    }


def test_the_same_seed_gives_the_same_lessons() -> None:
    one, same, other = (
        json.dumps([vars(c) for c in lessons(9, 9, Random(n)).flawed]) for n in (1, 1, 2)
    )
    assert one == same != other


def test_the_bundled_model_was_taught_these_prompts() -> None:
    taught = json.loads((Path(AGENT.model) / "config.json").read_text())["prompt_version"]
    assert taught == AGENT.prompt_version == load_prompts().version, (
        "rebuild the bundled model: python -m training.cold_start consultation --out consultation_agent/tiny_model"
    )


def test_consultations_of_ten_turns_fit_the_tiny_models_context() -> None:
    from tokenizers import Tokenizer

    from training.warmup.tiny_tokenizer import render

    tokenizer, sizes = (
        Tokenizer.from_file(str(Path(AGENT.model) / "tokenizer.json")),
        AGENT.sizes("cpu"),
    )
    for row in AGENT.rows(AGENT.splits["val"]):
        messages = baseline_episode("checklist", task_of(row), load_prompts(), 10).messages
        opening, whole = (
            tokenizer.encode(render(part, ())).ids for part in (messages[:2], messages)
        )
        assert len(opening) <= sizes.prompt
        assert len(whole) + sizes.reply <= sizes.prompt + sizes.response
        assert len(tokenizer.encode(messages[-1]["content"]).ids) < sizes.reply
