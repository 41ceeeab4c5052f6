"""Finding a name of a diagnosis in what must not tell it."""

from __future__ import annotations

import pytest

from conditions.diagnosis import mention


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("seen in iron-deficiency anemia", ["iron deficiency anaemia"], True),
        ("Oesophagitis.", ["esophagitis"], True),
        ("a p p e n d i c i t i s", ["appendicitis"], True),
        ("It is my ribs.", ["IBS"], False),
        ("pneumonia", ["bacterial pneumonia"], False),
        ("考虑急性阑 尾炎", ["急性阑尾炎"], True),
        ("anything.", ["", "?"], False),
    ],
)
def test_names_are_found_however_they_are_written(text: str, names: list[str], found: bool) -> None:
    assert bool(mention(names).search(text)) is found


def test_of_a_name_that_begins_another_one_the_longer_is_struck_out_whole() -> None:
    names = ["appendicitis", "appendicitis with perforation"]
    assert mention(names).sub("…", "It is appendicitis with perforation.") == "It is …."
