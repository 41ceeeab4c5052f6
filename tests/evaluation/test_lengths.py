"""`evaluation.lengths` says what `Sizes` must hold, and what is missing: docs/agents.md."""

from episodes import registry
from evaluation import lengths


def test_measured_lengths_stand_beside_what_a_tiny_model_is_given(capsys):
    agent = registry.get("diagnosis")
    assert lengths.main(["diagnosis", "--n", "2"]) == 0
    cells = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    given = {cell[0]: cell[-1] for cell in cells}
    for name in ("prompt", "response", "reply"):
        assert given[name] == str(getattr(agent.sizes("cpu"), name))
    assert agent.sizes("cpu") != agent.sizes("cuda")
