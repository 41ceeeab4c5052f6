"""Raw scores to [0, 1]: both kinds of map, and files that are no map.

Keeps of docs/rewards.md, "Judges": raw scores reach [0, 1] by the file alone; what is no score is a
failure, never a clamp.
"""

from __future__ import annotations

import math

import pytest

from common.settings import SettingsError
from scoring.scale import LogisticScale, load_scale


def write(tmp_path, text):
    path = tmp_path / "scale.json"
    path.write_text(text)
    return path


def test_a_quantile_scale_is_linear_between_its_points_and_flat_outside(tmp_path):
    scale = load_scale(
        write(tmp_path, '{"kind": "quantile", "raw": [-2, 0, 4], "unit": [0.1, 0.5, 1]}')
    )
    assert [scale.apply(raw) for raw in (-9, -2, -1, 0, 1, 4, 9)] == pytest.approx(
        [0.1, 0.1, 0.3, 0.5, 0.625, 1, 1]
    )


def test_a_logistic_scale_is_the_logistic_function(tmp_path):
    scale = load_scale(write(tmp_path, '{"kind": "logistic", "center": 1.5, "scale": 2}'))
    for raw in (-40.0, -1.0, 1.5, 3.0, 40.0):
        assert scale.apply(raw) == pytest.approx(1 / (1 + math.exp(-(raw - 1.5) / 2)), abs=1e-12)


@pytest.mark.parametrize("raw", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused(raw):
    with pytest.raises(SettingsError, match="finite"):
        LogisticScale(center=0.0, scale=1.0).apply(raw)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"kind": "quantile", "raw": [1, "2"], "unit": [0, 1]}', r"quantile\.raw\.1: "),
        ('{"kind": "quantile", "raw": [1, 2, 3], "unit": [0, 1]}', "3 points"),
        ('{"kind": "quantile", "raw": [0, 1], "unit": [1, 0]}', "fall"),
        ('{"kind": "logistic", "center": 0, "scale": 0}', "scale"),
        ('{"kind": "logistic", "center": NaN, "scale": 1}', "center"),
    ],
)
def test_a_file_that_is_no_scale_is_refused_with_the_reason(tmp_path, text, named):
    path = write(tmp_path, text)
    with pytest.raises(SettingsError, match=named) as caught:
        load_scale(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "(: " not in str(caught.value)
