"""Values are compared: what means the gold value scores in any spelling, and nothing else does.

Keeps of docs/code.md: who answers the gold value is right, however it is spelled, and nobody else.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from code_agent.graders import LONGEST, Gold, GoldError, grade

COUNT, AMOUNT = Gold("integer", 17), Gold("number", 24.5, lower=23.275, upper=25.725)
DRUGS = Gold("set", ("aspirin", "heparin"), items=("text",))
CODES = Gold("set", ("041", "4280"), items=("text",))
SERIES = Gold("list", (1.5, 2.0, 1.5), items=("number",))
DAYS = Gold("list", ("2104-05-17", "2104-05-19 08:30:00"), items=("date",))
BY_TYPE = Gold("table", (("urgent", 3), ("elective", 1)), items=("text", "integer"), ordered=False)
RANKED = Gold("table", (("urgent", 3), ("elective", 1)), items=("text", "integer"))
BORN = Gold("date", "2045-03-09 00:00:00")
SEEN = Gold("date", "2104-05-17 08:30:00")
COST = Gold("number", 1234.5, tolerance=0.005)
RATIO = Gold("number", 0.3)
NEAR = Gold("list", (1.0, 8.0), items=("number",), tolerance=0.5)
SHARES = Gold("table", (("u", 3.0), ("v", 1.0)), items=("text", "number"), tolerance=0.5)
STAY = Gold("number", 3353263)
STAYS = Gold("set", (3353263, 3353270), items=("number",))
NOTHING = Gold("number", 0.0)
NEIGHBOURS = Gold("set", (1.0005, 1.0005015), items=("number",))
HALF = Gold("number", 1.0, lower=0.0)  # one limit is none: a millionth counts

RIGHT = [
    (COUNT, ["17", " 17\n", "17.0", "+17", "1.7e1", "[17]", "[(17,)]", "'17'", '"17"',
             "np.int64(17)", "[np.int64(17)]"]),
    (AMOUNT, ["24.5", "23.275", "25.725", "24", "np.float64(24.1)", "[24.1]"]),
    (COST, ["1234.5", "1,234.50", "1234.505", "1234.495"]),
    (Gold("number", -0.3), ["-0.30000000000000004"]),
    (RATIO, ["0.3", "0.30000000000000004", ".3", "3e-1"]),
    (Gold("text", "micu"), ["micu", "MICU", "'micu'", '["micu"]', "micu\n"]),
    (Gold("text", "heart  failure"), ["Heart failure", "heart\t failure", "'heart failure '"]),
    (Gold("text", "041"), ["041", "'041'", "['041']"]),
    (Gold("text", "bed #3"), ["bed #3", "['bed #3']"]),
    (BORN, ["2045-03-09", "2045-03-09 00:00:00", "2045-03-09T00:00:00",
            "Timestamp('2045-03-09 00:00:00')", "'2045-03-09'", "2045/03/09", "datetime.date(2045, 3, 9)"]),
    (SEEN, ["2104-05-17 08:30:00", "2104-05-17T08:30", "[Timestamp('2104-05-17 08:30:00')]",
            "pd.Timestamp('2104-05-17 08:30:00')", "datetime.datetime(2104, 5, 17, 8, 30)"]),
    (Gold("date", "2104-05-17 08:30:15"), ["datetime.datetime(2104, 5, 17, 8, 30, 15)"]),
    (Gold("boolean", True), ["True", "true", "yes", "1", "[True]", "[np.True_]"]),
    (Gold("boolean", False), ["False", "no", "0", "[0]"]),
    (DRUGS, ["['heparin', 'aspirin']", '["aspirin", "heparin"]', "{'aspirin', 'heparin'}", "('aspirin', 'heparin')",
             "aspirin\nheparin", "heparin, aspirin", "[('aspirin',), ('heparin',)]", "['heparin' 'aspirin']",
             "frozenset({'heparin', 'aspirin'})", "array(['heparin', 'aspirin'], dtype=object)",
             "Index(['aspirin', 'heparin'], dtype='object', name='drug')", "dict_keys(['heparin', 'aspirin'])"]),
    (CODES, ["['041', 4280]", "041\n4280", "[['041'], ['4280']]"]),
    (SERIES, ["[1.5, 2.0, 1.5]", "[1.5, 2, 1.5]", "1.5\n2.0\n1.5",
              "[np.float64(1.5), np.float64(2.0), np.float64(1.5)]", "[1.5 2.  1.5]", "array([1.5, 2. , 1.5])"]),
    (NEAR, ["[1.5, 7.5]", "[0.5, 8]"]),
    (HALF, ["1.000001", "0.999999"]),
    (SHARES, ["[('u', 3.5), ('v', 0.5)]"]),
    (STAY, ["3353263", "3353263.0"]),
    (NOTHING, ["0", "0.0", "-0.0", "5.551115123125783e-17"]),
    (NEIGHBOURS, ["[1.0005009, 1.0004995]", "[1.0004995, 1.0005009]"]),
    (DAYS, ["['2104-05-17', '2104-05-19 08:30:00']"]),
    (BY_TYPE, ["{'elective': 1, 'urgent': 3}", "[('urgent', 3), ('elective', 1)]", '[["elective", 1], ["urgent", 3]]',
               "[{'type': 'urgent', 'n': 3}, {'type': 'elective', 'n': 1}]"]),
    (RANKED, ["[('urgent', 3), ('elective', 1)]", "{'urgent': 3, 'elective': 1}"]),
    (Gold("table", (("a", 1),), items=("text", "integer")), ["('a', 1)", "[('a', 1)]"]),
    (Gold("set", (), items=("integer",)), ["[]", "()"]),
]  # fmt: skip
WRONG = [
    (COUNT, ["", " ", "17 18", "17\n17", "17, 17", "[17, 17]", "[17, 18]", "17 patients", "it is 17", "17.2",
             "1_7", "0x11", "17 or 18", "21784", "line 17: NameError",
             "17 # or 18", "XVII", "١٧", "True", "None", "{17: 17}", "17;", "1 7", "[]", "[[]]",
             "-17", "17e", "17+0", "inf"]),
    (Gold("integer", 1), ["True", "yes", "one"]),
    (AMOUNT, ["23.2749", "25.7251", "inf", "-inf", "nan", "NaN", "Infinity", "1e999", "1e300",
              "-24.5", "24.5 25", "24.5 kg"]),
    (COST, ["1234.51", "1234.49", "1,23,4.5", "12,34.5", "$1234.5"]),
    (RATIO, ["0.30001", "30%", "0.3,", "3"]),
    (Gold("text", "micu"), ["micu sicu", "[micu]", "['micu', 'sicu']", "micu micu", "the micu", "mic", "micu\nsicu"]),
    (Gold("text", "041"), ["41", "41.0", "0041"]),
    (BORN, ["2045-03-09 00:00:01", "2045-03-10", "2045", "2045-03", "09.03.2045", "2045-03-09 2045-03-10",
            "['2045-03-09', '2045-03-10']", "2045-03-09T00:00:00+00:00"]),
    (SEEN, ["2104-05-17", "2104-05-17 08:30:01", "08:30"]),
    (Gold("number", -0.3), ["-0.31"]),
    (Gold("boolean", True), ["False", "[np.False_]", "0", "True False", "[True, False]", "maybe", "not False", "2",
                             "truely", "True\nFalse"]),
    (DRUGS, ["['aspirin']", "['aspirin', 'heparin', 'warfarin']", "['aspirin', 'heparin', 'heparin']", "aspirin",
             "['aspirin', 'aspirin']", "{'aspirin': 1, 'heparin': 1}", "['aspirin, heparin']", "aspirin heparin", "[]",
             "['aspirin', ['heparin', 'warfarin']]", "[['aspirin', 'heparin']]"]),
    (CODES, ["[41, 4280]", "['4280', '41']"]),
    (SERIES, ["[1.5, 1.5, 2.0]", "[1.5, 2.0]", "{1.5, 2.0}", "[1.5, 2.0, 1.5, 1.5]",
              "[1.5, 2.0, nan]", "[1.5, 2.0, 1.5] # or 2", "[1.5, # 3\n2.0, 1.5]", "[1.5, 2.1, 1.5]"]),
    (NEAR, ["[1.51, 8]", "[1, 7.49]"]),
    (HALF, ["0.5", "1.00001"]),
    (STAY, ["3353261", "3353264", "3353263.5"]),
    (STAYS, ["[3353260, 3353273]", "[3353263, 3353271]"]),
    (NOTHING, ["0.001"]),
    (NEIGHBOURS, ["[1.0004995, 1.0004996]"]),
    (SHARES, ["[('u', 3.51), ('v', 1)]", "['u3', ('v', 1)]", "[('u', 3), 'v1']"]),
    (DAYS, ["['2104-05-19 08:30:00', '2104-05-17']", "['2104-05-17', '2104-05-19']"]),
    (BY_TYPE, ["{'elective': 3, 'urgent': 1}", "{'urgent': 3}", "[('urgent', 3), ('elective', 1), ('urgent', 3)]",
               "[(3, 'urgent'), (1, 'elective')]", "{'urgent', 'elective'}", "['urgent', 'elective']",
               "urgent 3\nelective 1",
               "{'urgent': [3, 4], 'elective': 1}", "{'urgent': 3, 'elective': 1, 'emergency': 0}",
               "{'urgent': True, 'elective': 1}"]),
    (RANKED, ["[('elective', 1), ('urgent', 3)]"]),
    (Gold("set", (), items=("integer",)), ["", "None", "[0]", "{}", "nothing"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("gold", "answer"), [(gold, each) for gold, answers in RIGHT for each in answers], ids=repr
)
def test_a_spelling_of_the_value_scores(gold: Gold, answer: str) -> None:
    assert grade(answer, gold)


@pytest.mark.parametrize(
    ("gold", "answer"), [(gold, each) for gold, answers in WRONG for each in answers], ids=repr
)
def test_any_other_answer_does_not(gold: Gold, answer: str) -> None:
    assert not grade(answer, gold)


EVERY_GOLD = [gold for gold, _ in RIGHT]
HOSTILE = [
    "(" * 300, "[" * 60_000, "-" * 60_000, "{" * 300, "1+" * 30_000 + "1", "9" * 60_000, "1e" + "9" * 5000, "[1e999]",
    "[" + "1," * 30_000 + "1]", "(" + "1+" * 30_000 + "1)", "[" + "-" * 60_000 + "1]", "[" + "lambda:" * 9000 + "1]",
    "[a" + "[0]" * 20_000 + "]", "[" * 30_000 + "]" * 30_000, '{"a":' * 10_000 + "1" + "}" * 10_000, "np.int64(" * 99,
    "'" * 9, "\\", "\x00", "\ud800", "17" * (LONGEST // 2 + 1),
]  # fmt: skip


@pytest.mark.parametrize("answer", HOSTILE, ids=lambda answer: repr(answer[:12]))
def test_no_answer_raises(answer: str) -> None:
    assert not any(grade(answer, gold) for gold in EVERY_GOLD)


@given(some.sampled_from(EVERY_GOLD), some.text(max_size=60))
def test_no_text_raises(gold: Gold, answer: str) -> None:
    assert grade(answer, gold) in (True, False)


@pytest.mark.parametrize(
    ("gold", "said"),
    [({"kind": "colour", "value": 1}, "'colour'"),
     ({"kind": "integer", "value": "x"}, "own value"), ({"kind": "number", "value": float("nan")}, "own value"),
     ({"kind": "number", "value": 3.0, "lower": 1.0, "upper": 2.0}, "own value"),
     ({"kind": "date", "value": "2104-13-01"}, "own value"),
     ({"kind": "set", "value": (1, 1), "items": ("integer",)}, "own value"),
     ({"kind": "set", "value": (1,)}, "its kind"),
     ({"kind": "table", "value": ((1, 2),), "items": ("integer",)}, "its kind"),
     ({"kind": "text", "value": ""}, "own value")],
)  # fmt: skip
def test_a_gold_that_nothing_could_match_is_refused(gold: dict, said: str) -> None:
    with pytest.raises(GoldError, match=said) as caught:
        Gold(**gold)
    assert repr(gold["value"]) in str(caught.value) or "colour" in said, "it says which"
