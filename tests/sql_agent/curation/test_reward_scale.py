"""Fitting reward scales: the maths, every source of scores, and a stand-in reward model."""

from __future__ import annotations

import json
import math
import random
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.command import UsageError
from scoring.scale import LogisticScale, load_scale
from sql_agent.curation.reward_scale import main
from sql_agent.curation.scale_fit import fit, summary
from tests.serving import serving


class RewardServer(ThreadingHTTPServer):
    """Scores a response by its length; `faults` (status, body) are played first."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), RewardHandler)
        self.faults, self.asked = [], []
        self.url = f"http://127.0.0.1:{self.server_port}/score"


class RewardHandler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert body.keys() == {"prompt", "response"}
        score = {"score": float(len(body["response"])) - 20}
        status, text = self.server.faults.pop(0) if self.server.faults else (200, json.dumps(score))
        if status == 200:
            self.server.asked.append(body["response"])
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments):
        pass


@pytest.fixture
def reward_model():
    server = RewardServer()
    with serving(server):
        yield server


def normal(count=4_000):
    draw = random.Random(1)
    return [draw.gauss(-3, 2) for _ in range(count)]


def test_the_logistic_map_finds_the_centre_and_scale_of_logistic_scores():
    draw = random.Random(2)
    shares = [draw.random() for _ in range(20_000)]
    scale = fit([1.5 + 0.7 * math.log(share / (1 - share)) for share in shares], "logistic")
    assert isinstance(scale, LogisticScale)
    assert scale.center == pytest.approx(1.5, abs=0.05)
    assert scale.scale == pytest.approx(0.7, abs=0.02)


@given(
    st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=200),
    st.sampled_from(["quantile", "logistic"]),
)
def test_any_scores_give_a_map_that_keeps_their_order_or_one_error(scores, kind):
    try:
        scale = fit(scores, kind)
    except UsageError:
        assert len(set(scores)) < 2 or kind == "logistic"
        return
    after = [scale.apply(score) for score in sorted(scores)]
    assert after == sorted(after)
    assert 0 <= after[0] <= after[-1] <= 1
    assert summary(scores).keys() == summary(after).keys()


def test_scores_of_a_broken_endpoint_are_no_map():
    with pytest.raises(UsageError, match="1e\\+200"):
        fit([1e200, 0.0], "quantile")


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_column_of_scores_becomes_map_picture_and_table(tmp_path, capsys):
    source = written(
        tmp_path / "s.jsonl", [{"score": score} for score in normal(200)] + [{"score": None}]
    )
    output = tmp_path / "scale.json"
    assert main(["--scores", str(source), "--kind", "logistic", "--output", str(output)]) == 0
    assert load_scale(output) == fit(normal(200), "logistic")
    assert (tmp_path / "scale.png").read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert f"REWARD_SCALE={output}" in shown


def test_scores_of_a_run_are_read_by_column(tmp_path):
    rows = [{"reward": None, "terms": {"judge": 0.1 * n}} for n in range(5)]
    rows.append({"reward": None, "terms": {"rule": 0.1}, "unscored": "judge_timeout"})
    rows.append({"reward": None, "terms": {}, "status": "failed", "unscored": None})
    written(tmp_path / "episodes.jsonl", rows)
    options = ["--run", str(tmp_path), "--output", str(tmp_path / "a.json")]
    options += ["--column", "terms.judge"]
    assert main(options) == 0
    assert load_scale(tmp_path / "a.json").apply(0.2) == pytest.approx(0.5)
    assert main(options) == 2  # it exists
    assert main([*options, "--force"]) == 0


def pairs(tmp_path, count=30):
    return written(
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
    assert asked(tmp_path, reward_model.url) == 0
    assert len(reward_model.asked) == 30


def test_scores_of_one_endpoint_are_not_continued_with_another(tmp_path, reward_model, capsys):
    reward_model.faults = [(400, '{"error": "bad"}')]
    assert asked(tmp_path, reward_model.url) == 1
    assert asked(tmp_path, f"{reward_model.url}/of-another-model") == 2
    assert "url" in capsys.readouterr().err
    assert not (tmp_path / "a.json").exists()


def test_secrets_of_an_endpoint_that_is_not_there_are_in_no_message_and_no_file(tmp_path, capfd):
    url = "http://user:password-canary@127.0.0.1:9/score?token=canary"
    command = ["--pairs", str(pairs(tmp_path, 3)), "--timeout", "0.5"]
    assert main([*command, "--url", url, "--output", str(tmp_path / "a.json")]) == 1
    shown = capfd.readouterr()
    assert "canary" not in shown.out + shown.err
    assert b"canary" not in (tmp_path / "a.json.journal").read_bytes()


@pytest.mark.parametrize(
    ("row", "options", "says"),
    [
        ({"score": 1}, [], "all 1 are 1"),
        ({"score": "1"}, [], "line 1: score is '1'"),
        ({"x": 1}, [], "no column score"),
        ({"score": None}, [], "none"),
        ({"terms": 3}, ["--column", "terms.judge"], "terms.judge"),
    ],
)
def test_scores_that_make_no_map_are_refused(tmp_path, capsys, row, options, says):
    source = written(tmp_path / "s.jsonl", [row])
    assert main(["--scores", str(source), "--output", str(tmp_path / "a.json"), *options]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "a.json").exists()
