"""Choose a patient's words, so that some wordings of everything are left for unseen rows."""

from collections.abc import Sequence
from random import Random

from common.command import UsageError

KEPT_BACK = 0.3  # of the wordings of a phrase, at least one


class Speech:
    def __init__(self, seed: int, random: Random) -> None:
        self.seed = seed
        self.random = random

    def choose(
        self, thing: str, texts: Sequence[str], wording: str, never: Sequence[str] = ()
    ) -> str:
        """Return a text with none of the names in `never`, of the other wording if the wanted has
        none.
        """
        fit = [text for text in texts if not any(name in text for name in never)]
        if not fit:
            raise UsageError(f"every wording of {thing} names {never[0]}; add another")
        return self.random.choice(
            [text for text in self.allowed(thing, texts, wording) if text in fit] or fit
        )

    def allowed(self, thing: str, texts: Sequence[str], wording: str) -> list[str]:
        """Return those of the texts that are reserved for "unseen" rows, or the others."""
        shuffled = Random(f"{self.seed}/{thing}/{texts[0]}").sample(texts, len(texts))
        kept = max(1, int(KEPT_BACK * len(shuffled)))
        return shuffled[:kept] if wording == "unseen" else shuffled[kept:]
