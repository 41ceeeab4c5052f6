"""What a doctor's reply says: an optional <think> block and one <answer>, a question or a diagnosis with advice.

read_reply("<answer>问题：哪里疼？</answer>")                   # Question("哪里疼？")
read_reply("哪里疼？")                                          # Malformed("no_answer")
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common.thoughts import after_thought
from conditions.framing import Part, labelled, leads, parts_of, unframed
from episodes.text_loop import Ending, Malformed
from scoring.text import simplified

QUESTION = re.compile(r"[*#\s]{0,9}(?:question|问题)[*]{0,2}[ \t]{0,4}[:：][*]{0,2}", re.IGNORECASE)
AGAIN = re.compile(rf"(?:(?<=\n)|(?<=[\s。？?!！；;])){QUESTION.pattern}", re.IGNORECASE)
CONCLUDING = re.compile(
    r"(?:(?<=[\s。？?!！；;*]))(?:\w{0,4}诊断|\w{0,4}建议|(?:final )?diagnosis|recommendations?)[*]{0,2}[ \t]{0,4}[:：]",
    re.IGNORECASE,
)
# "Choice: B", "Choice B", "The correct answer is B", "正确答案是B", "故选：B"
CHOICE_LABEL = (
    r"[*_\s]{0,4}(?:(?:so|thus|therefore),? )?(?:(?:my |the )?(?:(?:final |correct |best )?(?:choice|answer)s?"
    r"|(?:correct|best) option)|[我故应该因此所以本题,]{0,5}(?:选[择项]?|(?:正确|最佳|最终)?答案|(?:正确|最佳)选项))"
    r"[*_ \t]{0,4}(?:(?:[:：=—–-]|(?:(?:is|are|would be)\b|应?[是为])[:：]?)[*_]{0,2}"
    r"|(?<![a-z])(?=\W{0,2}[a-z](?![a-z])))"
)
CHOSEN = (
    rf"(?:{CHOICE_LABEL}|[我故应该因此所以本题,]{{0,5}}选择?(?=\W{{0,2}}[a-z])"
    r"|(?:(?:so|thus|therefore),? )?I (?:would )?choose(?=\W{1,2}(?:option )?[a-z]\b))"
)
CHOICE = re.compile(rf"{CHOSEN}(.*)", re.IGNORECASE | re.DOTALL)
CHOICE_AGAIN = re.compile(rf"[\n,.。;；]\s?{CHOSEN}", re.IGNORECASE)
# A face at the end: ^_^, ~, an emoji. A cross and a thumb down take the letter back. For a
# text from behind: looked for at each place, brackets would take the square of their number.
FACE = re.compile(r"\A(?:[\s)!.]*+(?:\^_*+\^|~|(?![✗✘❌✖🚫👎])[☀-➿⬀-⯿🀀-🫿\ufe0f])[\s(]*+)++")
BOXED = re.compile(r"\\boxed\{(?:\\[a-z]+\{)?([^{}]*)\}{1,2}")
QUOTED = re.compile(r"""[\["'“‘【「]([a-z])[\]"'”’】」]""", re.IGNORECASE)
# "B", "(B)", "option B"; not the B of "B-cell". Of several: "A, C", "AC", "A和C", "(A), (C)"
ONE = re.compile(r"\(?(?:option |选项)?([a-z]\)?)(?![a-z0-9]|-\w)", re.IGNORECASE)
LIST = re.compile(
    r"(?i:both |options? |选项)?\(?([A-Z]\)?(?:(?:[\s,;:/&+*_|、(]|(?i:and|option)\b|[和与及]|选项)*[A-Z]\)?)+)"
    r"(?![A-Za-z0-9]|-\w)"
)
# "A" and "I" are words where another one follows, but no word of these.
NO_ARTICLE = re.compile(
    r"(?![ \t]+\w)|[ \t]+(?:is|are|was|seems|because|since|as|due|for|based|given|with|or|and)\b",
    re.IGNORECASE,
)
# What takes the letter before it back
DENIED = re.compile(
    r"[ \t]*(?:(?:is|are|was|seems)[ \t]+)?(?:both )?(?:not|wrong|incorrect|excluded|ruled out)\b"
    r"|[都均也]?(?:选项)?(?:不|是?错)",
    re.IGNORECASE,
)
# Another letter behind the first: "or perhaps A" and what ends with it, such as "; A" and "\nor A".
ANOTHER = re.compile(
    r"[\W_]*(?:(?:or|或)[\W_]*(?:[a-z]+ ){0,2}|(?:and|[和及])[\W_]*)(?-i:([A-Z]))(?![a-z0-9])"
    r"|[\W_]*(?:(?:or|and|option|choice|[或和及])[\W_]+|[或和及])*(?<![a-z0-9])([a-z])(?![a-z0-9]|[ \t]+(?!or\b|and\b)\w)",
    re.IGNORECASE,
)
# Behind the first letter, what names another one as the answer ("Actually A", "it is A", "还是A").
# No noun is among its words, so "vitamin A" is no answer.
CLAUSES = re.compile(r"[\n,;:!?()。、—–→]|\.(?![ \t]+[a-z])")
TURNED = re.compile(
    r"(?:(?:but|although|though|however|yet|no|wait|actually|rather|instead|otherwise|or|and|also|perhaps|maybe|vs|versus|i|it|its|it's|is|my|the"
    r"|final|correct|better|answer|choice|option|choose|pick|should|would|be|change|changed|to|mean|think)\b\s*)++"
    r"([a-z])(?:\s+(?:instead|rather|too|as well"
    r"|(?:is|looks|seems) (?:better|right|correct|more likely|the answer)))?"
    r"|([a-z])\s+(?:instead|is (?:better|right|correct|more likely|the answer))"
    r"|(?:还|否则|或者?|也|又|我|选|择|项|应|该|改|为|成|是|而|其实|最终|正确|答案)++\s*([a-z])[项吧]?",
    re.IGNORECASE,
)
TAKEN_BACK = re.compile(
    r"(?:(?:no|nope|wait|wrong|correction|on reflection|on second thoughts?)\b\s*)++|不(?:对|是)?|错了?",
    re.IGNORECASE,
)
# What may follow a letter without a space. Others make a word of both: C反应蛋白, B超.
NOT_A_WORD = re.compile(
    r"(?![一-鿿])|选?项|可能|正确|[是吧和或及与因由而比也都均还又最更才应不错对]"
)
# What is said against other letters, as the reason for the one before: "。A、B均不符合题意"
REJECTED = re.compile(
    r"(?<=[,.。;\n])[ \t]*([A-Z](?:[、/和与及][A-Z])*)[也均都则]?"
    r"(?:不(?:太?可能|符合?|对|是|支持|考虑|正确|典型)|是?错误?|[太较]?[少罕]见)"
    r"[^\W\da-z_不没无非但而吗除]{0,4}(?=[,.。;\n]|\Z)",
    re.IGNORECASE,
)
# What may follow a letter that no label is before, and its option's words
ALONE = re.compile(
    r"[ .。]*(?:选项|(?:is (?:the )?)?(?:correct|right)(?: answer)?|正确)?[ .。]*", re.I
)
# A letter that stands for itself
LONE = re.compile(r"(?<![A-Za-z0-9])[A-Z](?![A-Za-z0-9])")
INLINE = re.compile(
    r"(?<=[ \t。；;])(?=(?:(?:treatment )?recommendations?|(?:治疗|处理)?建议)[ \t]{0,4}[:：])",
    re.IGNORECASE,
)  # advice that follows its diagnosis on the same line

OWN = Path(__file__).with_name("prompts.toml")


@dataclass(frozen=True)
class Question:
    text: str

    @property
    def reply(self) -> str:
        """The reply that says this."""
        return f"<answer>问题：{self.text}</answer>"


@dataclass(frozen=True)
class Conclusion(Ending):
    diagnosis: str
    recommendation: str

    def __str__(self) -> str:
        return f"诊断：{self.diagnosis}\n建议：{self.recommendation}"

    @property
    def reply(self) -> str:
        """The reply that says this."""
        return f"<answer>{self}</answer>"


@dataclass(frozen=True)
class Choice(Conclusion):
    """A letter of the case's options, in place of a diagnosis."""

    def __str__(self) -> str:
        return f"Choice: {self.diagnosis}"


def read_reply(
    text: str, options: Mapping[str, str] | None = None, several: bool = False
) -> Question | Conclusion | Malformed:
    """Return what a reply says, or the name of its problem.

    options: those of the case, by letter, of which one is chosen in place of a diagnosis. several:
    or a list of them.
    """
    if not text.strip():
        return Malformed("empty")
    reply = after_thought(text.strip(), opened=False)
    if reply is None:
        return Malformed("open_thought")
    opened = reply.count("<answer>")
    closed = reply.count("</answer>")
    if not (opened and closed):
        return Malformed("no_answer")
    if opened > 1 or closed > 1:
        return Malformed("several_answers")
    if not (reply.startswith("<answer>") and reply.endswith("</answer>")):
        return Malformed("outside")
    answer = simplified(reply.removeprefix("<answer>").removesuffix("</answer>").strip())
    return _read_choice(answer, options, several) if options else _read_answer(answer)


def _read_answer(text: str) -> Question | Conclusion | Malformed:
    question = QUESTION.match(text)
    if question:
        asked = text[question.end() :]
        if CONCLUDING.search(asked):
            return Malformed("both")
        words = " ".join(part.strip() for part in AGAIN.split(asked) if part.strip())
        return Question(words) if words else Malformed("no_question")
    parts = parts_of(INLINE.sub("\n", text))
    kinds = [part.kind for part in parts if part.kind in ("question", "diagnosis", "advice")]
    if "question" in kinds:
        return Malformed("both" if {*kinds} - {"question"} else "no_label")
    return _conclusion(parts, kinds)


def _conclusion(parts: list[Part], kinds: list[str]) -> Conclusion | Malformed:
    before = "\n".join(part.text for part in parts if not part.kind)
    named = labelled(parts)
    advised = [part.text for part in parts if part.kind == "advice" and part.text]
    if before and ("diagnosis" in kinds or not leads(before)):
        return Malformed("no_label")
    if before:
        named = list(filter(None, map(unframed, before.splitlines())))
    elif kinds[:1] != ["diagnosis"]:
        named = []
    if not named:
        return Malformed("no_diagnosis")
    if not advised:
        return Malformed("no_recommendation")
    return Conclusion("、".join(named), "；".join(advised))


def _read_choice(
    text: str, options: Mapping[str, str], several: bool
) -> Question | Conclusion | Malformed:
    text = FACE.sub("", unicodedata.normalize("NFKC", text)[::-1])[::-1]
    text = BOXED.sub(r"\1", text.replace("`", "")).strip(" $")
    text = QUOTED.sub(r"(\1)", text)
    labelled = CHOICE.match(text)
    if labelled:
        said = CHOICE_AGAIN.split(labelled[1].replace("*", ""))
        choices = {_chosen(one, options, several) for one in said}
        letters = choices.pop()
        return Choice(letters, "") if letters and not choices else Malformed("no_diagnosis")
    if letters := _chosen(text, options, several, alone=True):
        return Choice(letters, "")
    if QUESTION.match(text):
        both = re.search(r"\bchoice[ \t]{0,4}[:：]", text, re.IGNORECASE)
        return Malformed("both") if both else _read_answer(text)
    return Malformed("no_label")


def _chosen(said: str, options: Mapping[str, str], several: bool, alone: bool = False) -> str:
    """Return the letters that a text chooses, as "B" or "A, C", or "". alone: no words follow them
    but those of the option.
    """
    said = _with_letters(said.strip(" *_.。\n"), options, several, alone)
    if several and re.fullmatch(r"[a-z]{2,5}|(?:[a-zA-Z](?![a-zA-Z])|and|\W)+", said):
        said = said.upper()
    is_list = LIST.match(said.strip("[] ")) if several else None
    listed = is_list or ONE.match(said)
    if not listed:
        return ""
    behind = listed.string[listed.end() :]
    letters = {*re.sub("(?i:and|option)|[^A-Za-z]", "", listed[1]).upper()}
    # "A drug", "I think", "AC joint"
    may_be_word = is_list or (letters & {*"AI"} and ")" not in listed[0])
    if not NOT_A_WORD.match(behind) or (may_be_word and not NO_ARTICLE.match(behind)):
        return ""
    stands = ALONE.fullmatch(behind) if alone else _stand(letters, behind, options)
    known = letters <= options.keys() and not DENIED.match(behind)
    return ", ".join(sorted(letters)) if known and stands else ""


def _with_letters(said: str, options: Mapping[str, str], several: bool, alone: bool) -> str:
    """Return a text with letters in place of their options' words, where one alone is chosen only
    before the end of a clause, or "" where another letter stands before such words.
    """
    plain = {letter: text.replace("`", "") for letter, text in options.items()}
    texts = {letter: text.strip(" .。").casefold() for letter, text in plain.items()}
    end = "" if several else rf"(?=\s*(?:$|and\b|[&+/和与及]|{CLAUSES.pattern}))"
    for letter, text in sorted(texts.items(), key=lambda option: -len(option[1])):
        if len(text) < 2:
            continue
        words = rf"{re.escape(text)}(?![a-z0-9])"
        own = rf"(?<![a-z0-9]){letter}\W{{0,3}}{words}"
        if letter == "A" and not (several or alone):  # "a aspirin"
            own = rf"(?<![a-z0-9])(?:(?-i:A)|a(?! {words}))\W{{0,3}}{words}"
        said = re.sub(own, letter, said, flags=re.IGNORECASE)
        bare = rf"(?<![a-z0-9])(?:(?-i:([A-Z]))[^\w\n,、;/&+]{{0,3}})?{words}{end}"
        before = {found[1] for found in re.finditer(bare, said, re.IGNORECASE)}
        if before - {None, letter}:
            return ""
        said = re.sub(bare, letter, said, flags=re.IGNORECASE)
    return said


def _stand(letters: set[str], behind: str, options: Mapping[str, str]) -> bool:
    """Return whether nothing behind letters takes them back or chooses another one."""
    against = {*"".join(REJECTED.findall(behind)).upper()}
    behind = REJECTED.sub("", behind)
    others = {*LONE.findall(behind)} & options.keys() - letters
    if letters & against or (others and (against or len(letters) > 1)):
        return False
    clauses = [clause.strip(" \t_-=") for clause in CLAUSES.split(behind)]
    clauses = list(filter(None, clauses))
    if clauses and TAKEN_BACK.fullmatch(clauses[0]):
        return False
    for other in (ANOTHER.match(behind), *map(TURNED.fullmatch, clauses)):
        named = other[other.lastindex or 0].upper() if other else ""
        if named in options and named not in letters:
            return False
    return True
