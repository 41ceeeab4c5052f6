"""A diagnosis is the gold one in any usual words, and another one never is: diagnoses.jsonl."""

import json
from pathlib import Path

import pytest

from conditions.diagnosis import names_it
from conditions.diagnosis_words import TABLE, conditions, words_of
from conditions.gold_sentence import diseases_in, secrets_of
from conditions.mention import mention
from tests.corpora import cases_of

CASES = cases_of(__file__, "diagnoses")
NAMES = conditions()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["gold"])
def test_usual_words_for_the_gold_diagnosis_are_right_and_all_others_wrong(case):
    assert [said for said in case["right"] if not names_it(said, [case["gold"]])] == []
    assert [said for said in case["wrong"] if names_it(said, [case["gold"]])] == []


@pytest.mark.system
def test_every_name_of_a_condition_is_its_own_and_no_other_ones():
    for place, own in enumerate(NAMES):
        for names in [own, *NAMES[place % 10 :: 10]]:
            assert {names_it(name, own) for name in names} == {names is own}, (own, names)


@pytest.mark.parametrize(
    "said", ["{}, no {}", "{} ({} excluded)", "{} rather than {}", "{}，排除{}", "{}（{}已排除）"]
)
def test_a_condition_stays_what_it_is_beside_another_one_that_is_denied(said):
    language = 0 if said.isascii() else 1
    for place, own in enumerate(NAMES):
        other = NAMES[place - 1]
        both = said.format(own[language], other[language])
        assert names_it(both, own), both
        assert not names_it(both, other), both


def test_a_gold_diagnosis_said_word_for_word_is_right_whatever_it_says():
    corpus = Path(__file__).parents[1] / "diagnosis_agent" / "corpus"
    given = [case["gold"] for case in CASES]
    for file in corpus.glob("diagnoses*.jsonl"):
        given += [json.loads(line)["gold"] for line in file.read_text("utf-8").splitlines()]
    for names in [*NAMES, *TABLE["same"].values()]:
        given += names
    assert [name for name in given if not names_it(name.upper(), [name])] == []
    assert [name for name in given if not names_it(f"The diagnosis is {name}.", [name])] == []
    assert names_it("Suspected gout, gout not excluded?", ["Suspected gout, gout not excluded?"])


def test_an_abbreviation_of_a_long_name_is_read_once_through():
    assert not names_it("gout (AAAAAB)", ["a" * 50_000])  # every way to place the letters: years
    assert names_it("gout (AAAAAA)", ["gout", "a" * 50_000])


def test_of_a_kind_that_one_of_the_names_has_another_one_is_wrong():
    assert not names_it("chronic pericarditis", ["acute pericarditis", "pericarditis"])
    assert not names_it("severe croup", ["mild croup", "croup"])
    in_days = ["urticaria", "hives", "acute urticaria"]  # of a condition that begins within days
    assert not any(names_it(said, in_days) for said in ("慢性荨麻疹", "chronic hives"))


def test_all_wordings_of_a_row_are_read_alike():
    for read_as, others in TABLE["same"].items():
        assert {words_of(other) for other in others} == {words_of(read_as)}, read_as


@pytest.mark.parametrize(("text", "names", "found"), cases_of(__file__, "mentions"))
def test_a_name_is_found_in_a_text_however_it_is_written(text, names, found):
    assert bool(mention(names).search(text)) is found


def test_of_a_name_that_begins_another_one_the_longer_is_struck_out_whole():
    names = ["appendicitis", "appendicitis with perforation"]
    assert mention(names).sub("…", "It is appendicitis with perforation.") == "It is …."


@pytest.mark.parametrize(("sentence", "names"), cases_of(__file__, "gold_sentences"))
def test_the_disease_of_a_gold_sentence(sentence, names):
    found = diseases_in(sentence)
    assert [*found[: len(names)]] == names
    assert all(names_it(name, found) for name in names)
    assert not names_it("pneumonia", found)
    assert not names_it("Based on your symptoms, you likely have it.", found)


def test_what_gives_a_diagnosis_away():
    secret = mention(secrets_of(["You have chronic gastritis, possibly with heart disease."]))
    for text in ("It was gastritis.", "chronic gastritis", "They spoke of heart disease."):
        assert secret.search(text)
    assert not secret.search("The diagnosis was not told. It hurts after meals.")
    assert mention(secrets_of(["acute appendicitis"])).search("医生说是阑尾炎")
    for name, told in (("acute lumbago", "It is lumbago."), ("慢性厄尔氏病", "是厄尔氏病")):
        assert mention(secrets_of([name])).search(told), "its synonyms are not known"
