"""Overlap of words: what equal, half equal and different texts score, in Chinese and English, and
what no text does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from consultation_agent.text_overlap import bleu, dei, rouge, text_overlap, words
from tests.planted_list import said_with

NAMES = {"word_f1", "bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_1", "rouge_2", "rouge_l"}


def test_words_are_of_both_languages_and_no_punctuation():
    found = words("慢性胃炎，Chronic gastritis！ １５ｍｇ")
    assert found == ["慢性", "胃炎", "chronic", "gastritis", "15mg"]


@pytest.mark.parametrize(
    "text", ["慢性胃炎，清淡饮食，注意休息", "Chronic gastritis; a light diet.", "慢性胃炎"]
)
def test_equal_texts_score_one_however_short(text):
    assert text_overlap(text, text) == pytest.approx(dict.fromkeys(NAMES, 1.0))


@pytest.mark.parametrize(
    ("text", "reference"), [("", "胃炎"), ("胃炎", ""), ("", ""), ("？", "胃炎"), ("肺炎", "胃炎")]
)
def test_nothing_in_common_scores_zero(text, reference):
    assert text_overlap(text, reference) == dict.fromkeys(NAMES, 0.0)


def test_bleu_is_the_geometric_mean_of_the_precisions():
    found = bleu("rest and ice today please", "rest and ice every day")
    assert found["bleu_1"] == pytest.approx(3 / 5)
    assert found["bleu_2"] == pytest.approx((3 / 5 * 2 / 4) ** (1 / 2))
    assert found["bleu_3"] == pytest.approx((3 / 5 * 2 / 4 * 1 / 3) ** (1 / 3))
    assert found["bleu_4"] == pytest.approx(
        (3 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** (1 / 4), rel=0.2
    )  # one is smoothed


def test_rouge_knows_the_order_of_words():
    found = rouge("ice and rest", "rest and ice")
    assert found == pytest.approx({"rouge_1": 1.0, "rouge_2": 0.0, "rouge_l": 1 / 3})


def test_dei_is_the_square_over_turns_and_tokens():
    assert dei(0.8, 6, 60) == pytest.approx(0.64 / 6.6)
    with pytest.raises(ValueError, match="dialogue"):
        dei(1.0, 0, 0)


@pytest.mark.system
def test_a_word_list_in_the_shared_temporary_folder_is_not_read(tmp_path: Path) -> None:
    """Whoever may write there could put code into it, or words that change scores."""
    text = "药是林则徐开的"
    one_word = {text[:end]: int(end == len(text)) for end in range(1, len(text) + 1)}
    code = f"from consultation_agent.text_overlap import words; print(len(words({text!r})))"
    assert int(said_with(one_word, tmp_path, code)) > 1
