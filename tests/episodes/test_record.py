"""The one schema of an episode: what is written is read back, what was not recorded is not there."""

import json

import numpy as np

from episodes.episode import Episode, Scored, Task
from episodes.kept import kept_episodes
from episodes.record import NOT_ALWAYS, EpisodeRecord, record_of
from scoring.rubric import Reward

MESSAGES = [{"role": "user", "content": "？"}, {"role": "assistant", "content": "密封"}]


def scored(reward: Reward, stop_reason: str = "answered") -> Scored:
    episode = Episode(answer="密封", stop_reason=stop_reason, messages=MESSAGES, turns=1)
    return Scored(Task(id="q1", question="？"), episode, reward, "", 0.25)


def test_a_line_is_read_back_with_the_agents_own_values():
    record = record_of(
        scored(Reward(1.0, {"judge": 1.0}, score=1.0)), {"facts": {"queried": 1.0}, "sql": 2}
    )
    line = record.line()
    assert (line["sql"], line["score"], line["transcript"]) == (2, 1.0, MESSAGES)
    assert EpisodeRecord.of_line(line) == record


def test_what_was_not_recorded_has_no_key_and_null_is_a_value():
    line = EpisodeRecord(id="q1").line()
    assert not {*NOT_ALWAYS} & {*line}
    assert line["answer"] is line["reward"] is line["score"] is None


def test_what_the_policy_did_not_finish_is_wrong_and_what_the_machine_broke_is_unscored():
    assert record_of(scored(Reward(0.1, {}, score=0.9), "max_turns"), {}).score == 0.0
    broken = record_of(scored(Reward(None, {}, "judge_failed")), {"facts": {"queried": 1.0}})
    assert (broken.score, broken.reward, broken.unscored) == (None, None, "judge_failed")
    assert broken.numbers == {}


def test_what_an_agent_records_may_be_of_numpy():
    own = {"share": np.float32(0.5), "found": np.bool_(True), "ranks": np.array([1, 2])}
    own["nested"] = [{"n": np.int64(3)}]
    record = record_of(scored(Reward(1.0, {"right": 1.0}, score=1.0)), own)
    line = json.loads(json.dumps(record.line()))
    found = {name: line[name] for name in own}
    assert found == {"share": 0.5, "found": True, "ranks": [1, 2], "nested": [{"n": 3}]}


def test_an_agent_records_nothing_in_the_place_of_what_was_measured():
    own = {"score": 37, "turns": 9, "canaries": "yellow", "own": 1, "bed": 4}
    record = EpisodeRecord.of_line(record_of(scored(Reward(1.0, {}, score=1.0)), own).line())
    assert (record.score, record.turns, record.canaries, record.own) == (1.0, 1, None, {"bed": 4})


def test_an_episode_that_has_a_score_is_learned_from(tmp_path, capsys):
    file = tmp_path / "episodes.jsonl"
    good = record_of(scored(Reward(1.0, {})), {}).line()
    broken = record_of(scored(Reward(None, {}, "judge_failed")), {}).line()
    silent = {**good, "transcript": MESSAGES[:1]}
    lines = [good, broken, silent]
    file.write_text("\n".join(map(json.dumps, lines)))
    [conversation] = kept_episodes(file, "sql")
    assert "2 episodes" in capsys.readouterr().err
    assert (conversation.messages, conversation.learn) == (MESSAGES, [True])
