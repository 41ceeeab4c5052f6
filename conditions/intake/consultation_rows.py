"""One consultation read from a row: a case to practise on, a dialogue to learn from, or a refusal."""

import re
from itertools import groupby
from operator import itemgetter
from reprlib import repr as shortly
from typing import Any, NamedTuple

Message = dict[str, str]
Pair = dict[str, list[str]]

PLAIN = ("messages", "dialogue", "dialog", "conversation", "conversations")
# What ShareGPT, IMCS-21 and others call the two parts of a message
SPEAKER = ("role", "from", "speaker")
WORDS = ("content", "value", "sentence", "text")
ROLES = {
    **dict.fromkeys(("doctor", "assistant", "医生", "gpt"), "assistant"),
    **dict.fromkeys(("patient", "user", "患者", "病人", "human"), "user"),
    "system": "system",
}
GOLD = ("diagnosis", "recommendation")
DETAILS = r"\s*(?:[（(][^（()）\n]{0,40}[)）])?"
SAID = re.compile(rf"\s*(\w+{DETAILS})\s*[:：]\s*(.*)", re.DOTALL)  # 患者（女，30岁）：我头痛
SPEAKS = re.compile(
    rf"^[^\S\n]*(?=(?:{'|'.join(ROLES)}){DETAILS}\s*[:：])", re.MULTILINE | re.IGNORECASE
)
REPLY = (
    "one <answer> with Question: or Diagnosis: and "
    "Recommendation:, and before it nothing or a <think> block"
)
FRAMED = re.compile(
    r"(?:<think>(?:(?!<answer>).)*</think>)?\s*<answer>\s*(?P<answer>(?:(?!</?answer>).)*)</answer>\s*",
    re.DOTALL,
)
QUESTION = re.compile(r"(Question|问题)[:：]")
DIAGNOSIS = re.compile(r"(Diagnosis|诊断)[:：]")
RECOMMENDATION = re.compile(r"(Recommendation|建议)[:：]")
# The text that the reference's environment adds to the patient's words
TURN = re.compile(r"Turn \d+/\d+\.$")
CHINESE = re.compile(r"[一-鿿]")


class Refused(ValueError):
    """A row that is not a consultation. The message says what was seen and what was expected."""


class Consultation(NamedTuple):
    """dialogue: from the complaint to the doctor's last reply, or []. case: a row of cases.parquet,
    or None.
    """

    dialogue: list[Message]
    case: dict[str, Any] | None


def read_consultation(row: dict[str, Any]) -> Consultation:
    """Return the consultation of a row of either form, as JSON values. Raises Refused."""
    if "prompt" in row:
        return _reference(row)
    for name in PLAIN:
        if name in row:
            return _plain(row, name)
    if {"instruction", "output"} <= row.keys():
        return _plain(row | {"messages": _of_instruction(row)}, "messages")
    raise Refused(f"has {shortly(list(row))}, expected prompt and reward_model, or messages")


def _of_instruction(row: dict[str, Any]) -> list[Message]:
    """Return the messages of a row of Alpaca's form: pairs of a history, and what follows them."""
    asked = [row[name] for name in ("instruction", "input") if row.get(name)]
    if not all(isinstance(text, str) for text in asked):
        raise Refused(f"instruction and input are {shortly(asked)}, expected texts")
    messages = []
    exchanges = items_of(row.get("history"), "history")
    for place, pair in [*exchanges, ("", ["\n".join(asked), row["output"]])]:
        if not isinstance(pair, list) or len(pair) != len(("patient", "doctor")):
            raise Refused(f"{place} is {shortly(pair)}, expected [question, reply]")
        messages += [{"role": "user", "content": pair[0]}, {"role": "gpt", "content": pair[1]}]
    return messages


def _reference(row: dict[str, Any]) -> Consultation:
    turns = _turns(row["prompt"], "prompt")
    if row.get("response") is not None:
        last = {"role": "assistant", "content": text_of(row["response"], "response")}
        turns = _joined([*turns, last])
    for turn in turns:
        if turn["role"] == "user":
            words = turn["content"].rpartition("Patient's description:")[2]
            words = words.partition("Decide next action:")[0].strip()
            turn["content"] = text_of(TURN.sub("", words), "what the patient says")
    dialogue = _checked(turns)
    record = object_of(row.get("reward_model"), "reward_model")
    truth = object_of(record.get("ground_truth"), "reward_model.ground_truth")
    description = record.get("enhanced_description")
    pairs = []
    for place, given in items_of(record.get("patient_information"), "patient_information"):
        pair = object_of(given, place)
        question = texts_of(pair.get("doctor_question"), f"{place}.doctor_question")
        answer = texts_of(pair.get("patient_response"), f"{place}.patient_response")
        if question and answer:
            pairs.append({"doctor_question": question, "patient_response": answer})
    if not description and not pairs and not dialogue:
        raise Refused(
            "has no patient_information and no enhanced_description, "
            "expected one for the patient to tell"
        )
    description = text_of(description, "enhanced_description") if description else None
    gold = {name: text_of(truth.get(name), f"ground_truth.{name}") for name in GOLD}
    told = description or pairs
    case = _case(turns[0]["content"], gold, pairs, description) if told else None
    return Consultation(dialogue, case)


def _plain(row: dict[str, Any], name: str) -> Consultation:
    turns = _turns(row[name], name)
    last = turns.pop()["content"] if turns[-1]["role"] == "assistant" else ""
    gold = {name: text_of(row[name], name) for name in GOLD if row.get(name)}
    dialogue = []
    for turn in turns:
        words = turn["content"]
        if turn["role"] == "assistant" and "<answer>" not in words:
            label = "问题：" if CHINESE.search(words) else "Question: "
            words = f"<answer>{label}{words}</answer>"
        dialogue.append(turn | {"content": words})
    if "<answer>" not in last and "diagnosis" in gold:
        gold["recommendation"] = gold.get("recommendation") or text_of(last, "recommendation")
        chinese = CHINESE.search(gold["diagnosis"])
        form = "诊断：{}\n建议：{}" if chinese else "Diagnosis: {}\nRecommendation: {}"
        last = f"<answer>{form.format(gold['diagnosis'], gold['recommendation'])}</answer>"
    if "<answer>" in last:
        dialogue.append({"role": "assistant", "content": last})
    dialogue = _checked(dialogue)
    if not dialogue:
        raise Refused(
            f"{name} has no doctor's words after the patient's first that the patient "
            "answers, and no diagnosis; expected one of them"
        )
    pairs = []
    for question, answer in zip(turns[1::2], turns[2::2], strict=True):
        words = question["content"]
        inside = (words.partition("<answer>")[2] or words).partition("</answer>")[0].strip()
        bare = QUESTION.sub("", inside, count=1).strip() or words
        pairs.append({"doctor_question": [bare], "patient_response": [answer["content"]]})
    is_case = pairs and len(gold) == len(GOLD)
    case = _case(turns[0]["content"], gold, pairs, None) if is_case else None
    return Consultation(dialogue, case)


def _turns(value: Any, where: str) -> list[Message]:
    """Return the turns, the patient first, with consecutive messages of one speaker joined."""
    if isinstance(value, str) and SPEAKS.search(value):
        value = [said for said in SPEAKS.split(value) if said.strip()]
    if not isinstance(value, list):
        form = "a list of {role, content}, or lines as 患者：头痛"
        raise Refused(f"{where} is {shortly(value)}, expected {form}")
    said = [_message(message, place) for place, message in items_of(value, where)]
    turns = _joined([message for message in said if message["role"] != "system"])
    turns = turns[1:] if turns and turns[0]["role"] == "assistant" else turns
    if not turns:
        raise Refused(f"{where} is {shortly(value)}, expected the patient's words")
    return turns


def _joined(said: list[Message]) -> list[Message]:
    return [
        {"role": role, "content": " ".join(message["content"] for message in several)}
        for role, several in groupby(said, itemgetter("role"))
    ]


def _message(value: Any, where: str) -> Message:
    told = SAID.fullmatch(value) if isinstance(value, str) else None
    message = object_of({"role": told[1], "content": told[2]} if told else value, where)
    role = next((message[name] for name in SPEAKER if name in message), None)
    words = next((message[name] for name in WORDS if name in message), None)
    named = re.sub(f"{DETAILS}$", "", role.strip()).lower() if isinstance(role, str) else ""
    if named not in ROLES:
        raise Refused(f"{where}.role is {shortly(role)}, expected one of {', '.join(ROLES)}")
    return {"role": ROLES[named], "content": text_of(words, f"{where}.content")}


def object_of(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refused(f"{where} is {shortly(value)}, expected an object")
    return value


def items_of(value: Any, where: str) -> list[tuple[str, Any]]:
    """Return the items of a list, which may be missing, each behind its place."""
    several = value or []
    if not isinstance(several, list):
        raise Refused(f"{where} is {shortly(several)}, expected a list")
    return [(f"{where}[{number}]", item) for number, item in enumerate(several)]


def text_of(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Refused(f"{where} is {shortly(value)}, expected text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(
            f"{where} is {shortly(value)}: half a surrogate pair, expected characters"
        ) from None
    return value.strip()


def texts_of(value: Any, where: str) -> list[str]:
    several = [value] if isinstance(value, str) else value
    return [text_of(text, where) for _, text in items_of(several, where) if text]


def _checked(turns: list[Message]) -> list[Message]:
    dialogue = turns if turns[-1]["role"] == "assistant" else turns[:-1]
    for reply in dialogue[1::2]:
        framed = FRAMED.fullmatch(reply["content"])
        answer = framed["answer"] if framed else ""
        concludes = DIAGNOSIS.match(answer) and RECOMMENDATION.search(answer)
        if not (QUESTION.match(answer) or concludes):
            raise Refused(f"a doctor's reply is {shortly(reply['content'])}, expected {REPLY}")
    return dialogue


def _case(
    complaint: str, gold: dict[str, str], pairs: list[Pair], description: str | None
) -> dict[str, Any]:
    told = {"patient_information": pairs, "enhanced_description": description}
    return {
        "data_source": "medical_consultation",
        "prompt": [{"role": "user", "content": complaint}],
        "reward_model": {"ground_truth": gold} | told,
    }
