"""The environment is a gymnasium one, is made by name, and plays what training plays."""

import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from code_agent.medagentgym.env import EHREnv, MedAgentEnv
from code_agent.task import CodeTask
from episodes.episode import AgentError
from tests.code_agent.cases import COUNT, RUN, SUBMIT, Small
from tests.own_processes import OwnProcesses

CODE = COUNT.replace("\\n", "\n")


@pytest.fixture
def env(tables):
    made = MedAgentEnv(Small, {"data_path": tables, "mode": "test", "debugger_config": None})
    yield made
    made.close()


def test_gymnasiums_checker_passes(env):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of spaces that are none of its own
        check_env(env, skip_render_check=True)


@pytest.mark.parametrize("name", ["MedAgentEnv-v0", "EHREnv-v0"])
def test_it_is_made_by_name(tables, name):
    made = gymnasium.make(name, task_entrypoint=Small, task_kwargs={"data_path": tables})
    observation, info = made.reset(options={"task_id": 1})
    assert made.observation_space.contains(observation)
    assert info["task_goal"] == "How many cities?"
    made.close()
    assert EHREnv is MedAgentEnv


@pytest.mark.usefixtures("bubblewrap")
def test_an_episode_by_names_and_parameters(env):
    observation, info = env.reset(0)
    assert observation["type"] == "initial_observation"
    assert "submit" in info["task_info"]["permitted_actions"]
    observation, reward, terminated, truncated, info = env.step("validate_code", code=CODE)
    assert observation["type"] == "code_execution"
    assert observation["status"] == "SUCCESS"
    assert observation["env_message"] == "3"
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["task_info"] == {"message": "3", "ending": "submit"}
    observation, _, _, _, _ = env.step(
        "request_info", data_path="patients.csv", info_type="column_names"
    )
    assert observation["env_message"] == "subject_id, gender, city"
    assert env.step("submit", answer=3)[1:4] == (1.0, True, False)
    assert env.step("submit", answer=3)[1:4] == (0.0, True, False), "it is paid once"
    env.env_history.pop()
    assert [seen["type"] for seen in env.env_history] == [
        *("initial_observation", "code_execution", "requested_info", "submitted")
    ]


@pytest.mark.usefixtures("bubblewrap")
def test_a_raw_reply_and_a_refused_one(env):
    env.reset(0)
    observation, reward, terminated, *_ = env.step("I would rather talk.")
    assert (observation["type"], reward, terminated) == ("error", 0.0, False)
    assert "'fly'" in env.step("fly", to="Basel")[0]["env_message"]
    assert env.step(RUN % COUNT)[0]["env_message"] == "3"
    assert env.step(SUBMIT % "4")[1:3] == (0.0, True)
    assert env.step(SUBMIT % "3")[1] == 0.0, "the episode is over"


def test_an_ending_there_is_not_is_refused(tables):
    """No episode of it would end: it has neither an answer nor a right output."""
    env = MedAgentEnv(Small, {"data_path": tables}, ending="orcale")
    with pytest.raises(ValueError, match="'orcale'"):
        env.reset(0)
    env.close()


def test_an_action_of_the_users_own(tables):
    env = MedAgentEnv(Small, {"data_path": tables}, {"add": lambda a, b: f"{a + b}"})
    env.reset(0)
    observation = env.step("add", a=1, b=2)[0]
    assert (observation["type"], observation["env_message"]) == ("environment_feedback", "3")
    env.close()


def test_a_task_whose_data_is_missing_is_not_begun(tables):
    class Lacking(Small):
        def unusable(self, task: CodeTask) -> str:
            return "lacks its table"

    env = MedAgentEnv(Lacking, {"data_path": tables})
    with pytest.raises(AgentError, match="lacks its table"):
        env.reset(0)


@pytest.mark.system
def test_a_task_leaves_the_next_one_no_interpreter(tables, plain_processes):
    env = MedAgentEnv(Small, {"data_path": tables})

    def play() -> None:
        env.reset(task_id=0)
        assert env.step("validate_code", code="print(1)")[0]["env_message"]

    assert OwnProcesses().more_after(play) <= 0
    env.close()
