"""Answers that are no answers, and how MedAgentGym's graders judge them by their published rules.

rule "text": the output contains the first gold value, True and False being 1 and 0. rule "either":
a number that keeps one of its two limits. rule "always": whatever was printed.
"""

from __future__ import annotations

from code_agent.graders import Gold

COUNT, AMOUNT = Gold("integer", 17), Gold("number", 24.5, lower=23.275, upper=25.725)
QUESTION = "How many of the 41 patients of ward 17 had a stay in 2105?"
# What is said of an answer, the answer to "17", the answer to "24.5".
ANSWERS = {
    "the value": ("17", "24.5"),
    "nothing": ("", ""),
    "the whole column": ("3\n17\n41", "21.0\n24.5\n30.2"),
    "every number to 100": (" ".join(map(str, range(101))), " ".join(map(str, range(101)))),
    "the value among others": ("[17, 18]", "[24.5, 25.0]"),
    "a longer number with its digits": ("21784", "124.5"),
    "the value and a doubt": ("17 or 18", "24.5 or 30"),
    "the question": (QUESTION, QUESTION),
    "inf": ("inf", "inf"),
    "-inf": ("-inf", "-inf"),
    "nan": ("nan", "nan"),
    "far too large": ("1e300", "1e300"),
    "far too small": ("-5", "-5"),
    "an error message": ("line 17: NameError", "line 24.5: NameError"),
}


def contains_text(output: str, gold: Gold) -> bool:
    """The rule of mimic_iii, eicu and treqs."""
    mapped = output.replace("True", "1").replace("False", "0")
    return str(gold.value) in mapped


def either_limit(output: str, gold: Gold) -> bool:
    """The rule of medcalcbench."""
    try:
        number = float(output)
    except ValueError:
        return False
    assert gold.lower is not None
    assert gold.upper is not None
    return number >= gold.lower or number <= gold.upper


def always(output: str, gold: Gold) -> bool:
    """The rule of ehr_seqsql."""
    return True
