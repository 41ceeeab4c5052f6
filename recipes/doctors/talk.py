"""Word a fact or a complaint as a patient does, with what people say around it.

talk = Talk(tables, Speech(0, Random(0)), "seen", never=["偏头痛"])
talk.fact(tables.symptoms["fever"])         # "嗯，我发烧了"
talk.opening("headache", age=35)            # "你好，我想看看头痛。我有点不放心。"
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from common.toml import table_beside
from conditions.condition_types import Phrase, Tables
from recipes.doctors.speech import Speech

TALK: dict[str, Any] = table_beside(__file__)


class Talk:
    """The words of one patient, "seen" or "unseen", without the names in `never` and, if there are
    others, without the words in `denied`.
    """

    def __init__(
        self,
        tables: Tables,
        speech: Speech,
        wording: str,
        never: Sequence[str],
        denied: Sequence[str] = (),
    ) -> None:
        self.tables = tables
        self.speech = speech
        self.wording = wording
        self.never = never
        self.denied = denied
        self.told = dict[Phrase, str]()
        self.beside = set[Phrase]()

    def fact(self, phrase: Phrase, beside: Sequence[Phrase] = (), bare: bool = False) -> str:
        """Return what the patient says of a fact, perhaps with another thing it has beside it.

        Nothing is told beside others twice. A bare fact stands alone, because a reader looks for
        words in it.
        """
        text = self._plain(phrase)
        if self._happens("before"):
            text = self._around("before") + text
        if bare:
            return text
        others = [one for one in beside if one not in self.beside]
        if others and self._happens("beside"):
            other = self.speech.random.choice(others)
            self.beside.add(other)
            text += f"，{self._plain(other)}"
        if self._happens("remark"):
            text += f"，{self._around('remark')}"
        if self._happens("back"):
            text += f"，{self._around('back')}"
        return text

    def opening(self, complaint: str, age: int) -> str:
        text = self._plain(self.tables.complaints[complaint])
        greets = text.startswith(tuple(TALK["around"]["greetings"]))
        if self._happens("opening_before") and not greets:
            text = self._around("opening_before") + text
        if self._happens("opening_behind"):
            text += self._around("opening_behind").format(age=age)
        return text

    def _plain(self, phrase: Phrase) -> str:
        """Return the same words each time, so that two numbers or sides never stand side by side."""
        if phrase not in self.told:
            longer = bool(phrase.longer) and self._happens("longer")
            texts = phrase.longer if longer else phrase.lay
            chosen = self.speech.choose(phrase.zh, texts, self.wording, self.never)
            self.told[phrase] = self._undenied(phrase, chosen)
        return self.told[phrase]

    def _undenied(self, phrase: Phrase, chosen: str) -> str:
        if not any(word in chosen for word in self.denied):
            return chosen
        others = list[str]()
        for texts in filter(None, (phrase.lay, phrase.longer)):
            for text in self.speech.allowed(phrase.zh, texts, self.wording):
                if not any(word in text for word in (*self.denied, *self.never)):
                    others.append(text)
        # Not by speech.random, which the facts and rows behind this one are drawn with
        return Random(chosen).choice(others or [chosen])

    def _around(self, name: str) -> str:
        return self.speech.choose(name, TALK["around"][name], self.wording, self.never)

    def _happens(self, name: str) -> bool:
        return bool(self.speech.random.random() < TALK["share"][name])
