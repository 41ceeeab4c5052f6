"""Fitting reward scales: every source of scores, and a stand-in reward model."""

import json
from http.server import ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.command import UsageError
from scoring.scale import load_scale
from sql_agent.curation.reward_scale import fit, main
from tests.corpora import cases_of, write_lines
from tests.serving import JsonHandler, serving


class RewardServer(ThreadingHTTPServer):
    """Scores a response by its length; `faults` (status, body) are played first."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), RewardHandler)
        self.faults, self.asked = [], []
        self.url = f"http://127.0.0.1:{self.server_port}/score"


class RewardHandler(JsonHandler):
    def do_POST(self):
        body = self.asked()
        assert body.keys() == {"prompt", "response"}
        score = {"score": float(len(body["response"])) - 20}
        status, text = self.server.faults.pop(0) if self.server.faults else (200, json.dumps(score))
        if status == 200:
            self.server.asked.append(body["response"])
        self.answer(text.encode(), status)


@pytest.fixture
def reward_model():
    server = RewardServer()
    with serving(server):
        yield server


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=200))
def test_any_scores_give_a_map_that_keeps_their_order_or_one_error(scores):
    try:
        scale = fit(scores)
    except UsageError:
        assert len(set(scores)) < 2
        return
    after = [scale.apply(score) for score in sorted(scores)]
    assert after == sorted(after)
    assert 0 <= after[0] <= after[-1] <= 1


def test_scores_of_a_run_are_read_by_column(tmp_path, capsys):
    rows = [{"reward": None, "terms": {"judge": 0.1 * n}} for n in range(5)]
    rows.append({"reward": None, "terms": {"rule": 0.1}, "unscored": "judge_timeout"})
    rows.append({"reward": None, "terms": {}, "status": "failed", "unscored": None})
    source = write_lines(tmp_path / "episodes.jsonl", rows)
    output = tmp_path / "a.json"
    options = ["--scores", str(source), "--column", "terms.judge", "--output", str(output)]
    assert main(options) == 0
    assert load_scale(output).apply(0.2) == pytest.approx(0.5)
    assert f"REWARD_SCALE={output}" in capsys.readouterr().out
    assert main(options) == 2  # it exists
    assert main([*options, "--force"]) == 0


def pairs(tmp_path, count=30):
    return write_lines(
        tmp_path / "p.jsonl", [{"prompt": "问", "response": "答" * (n + 1)} for n in range(count)]
    )


def asked(tmp_path, url):
    """The exit code of the program that asks this endpoint about the pairs."""
    output = ["--output", str(tmp_path / "a.json")]
    return main(["--pairs", str(pairs(tmp_path)), "--url", url, *output])


def test_the_endpoint_is_asked_and_its_scores_are_kept(tmp_path, reward_model):
    reward_model.faults = [(503, ""), (200, "nonsense"), (200, '{"score": null}')]
    assert asked(tmp_path, reward_model.url) == 0
    kept = tmp_path / "a.scores.jsonl"
    scores = [json.loads(line) for line in kept.read_text().splitlines()]
    assert scores == [{"row": n, "raw": float(n - 19)} for n in range(30)]
    assert load_scale(tmp_path / "a.json").apply(-4.5) == pytest.approx(0.5)
    assert not (tmp_path / "a.json.journal").exists()


def test_a_failed_pair_is_no_zero_and_is_asked_again_alone(tmp_path, reward_model, capsys):
    reward_model.faults = [(400, '{"error": "bad"}')]
    assert asked(tmp_path, reward_model.url) == 1
    assert "1 of 30" in capsys.readouterr().err
    assert not (tmp_path / "a.json").exists()
    assert asked(tmp_path, f"{reward_model.url}/of-another-model") == 2
    assert "url" in capsys.readouterr().err
    assert asked(tmp_path, reward_model.url) == 0
    assert len(reward_model.asked) == 30


def test_secrets_of_an_endpoint_that_is_not_there_are_in_no_message_and_no_file(tmp_path, capfd):
    url = "http://user:password-canary@127.0.0.1:9/score?token=canary"
    command = ["--pairs", str(pairs(tmp_path, 3)), "--timeout", "0.5"]
    assert main([*command, "--url", url, "--output", str(tmp_path / "a.json")]) == 1
    shown = capfd.readouterr()
    assert "canary" not in shown.out + shown.err
    assert b"canary" not in (tmp_path / "a.json.journal").read_bytes()


@pytest.mark.parametrize(("rows", "says"), cases_of(__file__, "no_scales"))
def test_scores_that_make_no_map_are_refused(tmp_path, capsys, rows, says):
    source = write_lines(tmp_path / "s.jsonl", rows)
    assert main(["--scores", str(source), "--output", str(tmp_path / "a.json")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "a.json").exists()
