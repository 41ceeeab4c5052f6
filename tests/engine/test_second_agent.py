"""The tests' own agent, without tools and with a protocol of words, through the whole engine: cold
start to demo.

What it proves: nothing in these rooms is about SQL. Its model's chat template knows no tools.
"""

from collections import Counter

import pytest

from episodes import registry
from evaluation import evaluate
from evaluation.report.demo import AFTER, BEFORE, TRAIN, build
from evaluation.report.page import read
from evaluation.results import read_episodes, read_scores
from tests.digits_agent.agent import AGENT
from training import cold_start

pytestmark = [pytest.mark.engine, pytest.mark.nightly]
registry.register(AGENT)

WITHOUT_TOOLS = """{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
QUICK = ("trainer.total_training_steps=2", "trainer.test_freq=2", "trainer.save_freq=2")
TURNS = ("--max-turns", "4")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny model of the agent's lessons: it knows the protocol, and copies some of the digits."""
    out = tmp_path_factory.mktemp("digits") / "model"
    assert cold_start.main(["digits", "--out", str(out), "--steps-a", "90", "--steps-b", "1"]) == 0
    (out / "chat_template.jinja").write_text(WITHOUT_TOOLS, encoding="utf-8")
    return out


@pytest.fixture(scope="module")
def trained(model, start):
    flags = ("--ci-fast", "--model", str(model), *TURNS, *QUICK)
    run = start(*flags, program="tests/train_digits_agent.py")
    assert run.wait() == 0, run.output
    return run


def test_it_trains_on_the_real_engine(trained):
    summary = trained.summary()
    assert summary["rollouts"] == {"finished": 64, "failed": 0, "unscored": 0}
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    assert summary["triplets"] == summary["counters"]["turns"]
    assert summary["signal"]["sequences_per_episode"] <= 1.05
    assert summary["weight_updates"] + summary["steps_without_signal"] == 2
    assert "asked_share" in summary["measures"]
    assert trained.alive() == []


def test_no_episode_is_longer_than_its_tasks_budget(trained):
    calls = [line["turns"] for line in trained.lines("episodes.jsonl")]
    assert min(calls) >= 1
    assert max(calls) <= 4, "three digits and the answer"


def test_evaluation_and_demo_report_it(model, trained, tmp_path):
    assert evaluate.main(["digits", "--model", str(model), "--out", str(tmp_path / BEFORE)]) == 0
    assert evaluate.main(["digits", "--gold", "--out", str(tmp_path / AFTER)]) == 0
    scores = read_scores(tmp_path / BEFORE)
    assert (scores["agent"], scores["overall"]["n"], scores["partner"]) == ("digits", 24, "here")
    assert 0 <= scores["overall"]["asked_share_ci95"][0] <= scores["overall"]["asked_share"] <= 1
    assert read_scores(tmp_path / AFTER)["overall"]["score"] == 1
    assert {record["task_type"] for record in read_episodes(tmp_path / BEFORE)} == {"two", "three"}
    (tmp_path / TRAIN).symlink_to(trained.run_dir)
    about = {"minutes": 1.0, "seed": 1, "model": str(model), "command": "x"}
    result = build(AGENT, tmp_path, tmp_path / TRAIN, about)
    assert result["headline"] == "asked_share"
    assert result["after"] == 100.0
    assert result["n_eval"] == 24
    assert result["steps"] == 2
    assert "asked_share" in read([tmp_path]).html()


def test_a_partner_is_served_for_the_length_of_the_run(model, start):
    keys = ("trainer.test_freq=-1", "trainer.save_freq=-1")
    flags = ("--ci-fast", "--model", str(model), "--partner-model", str(model), *TURNS, *keys)
    run = start(*flags, program="tests/train_digits_agent.py")
    assert run.wait() == 0, run.output
    assert run.text("logs/partner_url.log"), "the partner's server wrote nothing"
    assert run.alive() == []


@pytest.fixture(scope="module")
def together(start):
    run = start("--agents", "sql,diagnosis:3", "--ci-fast", program="train_agents.py")
    assert run.wait() == 0, run.output
    return run


def test_a_step_holds_each_agent_by_its_weight(together):
    rows = together.lines("episodes.jsonl")
    trained = Counter(row["agent"] for row in rows if row["mode"] == "train")
    assert trained == {"sql": 2 * 4, "diagnosis": 6 * 4}
    assert {row["agent"] for row in rows if row["mode"] == "val"} == {"sql", "diagnosis"}
    groups = {(row["group"], row["agent"], row["id"]) for row in rows if row["mode"] == "train"}
    assert len(groups) == 8, "a group is of one task"
