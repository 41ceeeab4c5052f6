"""The disease that a gold sentence names, and what gives it away."""

from __future__ import annotations

import pytest

from conditions.diagnosis import mention, names_it
from conditions.gold_sentence import diseases_in, secrets_of


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("The diagnosis is appendicitis.", ["appendicitis"]),
        ("Based on your symptoms, it is likely gastritis.", ["gastritis"]),
        ("You likely have a cold or stomach flu.", ["cold", "stomach flu"]),
        ("Your child likely has bronchitis and needs treatment.", ["bronchitis"]),
        ("You may have irritable bowel syndrome (IBS).", ["irritable bowel syndrome", "IBS"]),
        ("根据您的症状，考虑为急性胃炎，建议复查。", ["急性胃炎"]),
    ],
)
def test_the_disease_of_a_sentence(sentence: str, names: list[str]) -> None:
    found = diseases_in(sentence)
    assert [*found[: len(names)]] == names
    assert all(names_it(name, found) for name in names)
    assert not names_it("pneumonia", found)
    assert not names_it("Based on your symptoms, you likely have it.", found)


def test_what_gives_a_diagnosis_away() -> None:
    secret = mention(secrets_of(["You have chronic gastritis, possibly with heart disease."]))
    for text in ("It was gastritis.", "chronic gastritis", "They spoke of heart disease."):
        assert secret.search(text)
    assert not secret.search("The diagnosis was not told. It hurts after meals.")
    assert mention(secrets_of(["acute appendicitis"])).search("医生说是阑尾炎")
    for name, told in (("acute lumbago", "It is lumbago."), ("慢性厄尔氏病", "是厄尔氏病")):
        assert mention(secrets_of([name])).search(told), "its synonyms are not known"
