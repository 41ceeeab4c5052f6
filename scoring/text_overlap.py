"""How much a text has in common with a reference: word-F1, BLEU-1 to 4, ROUGE-1, 2 and L; and DEI.

    text_overlap("偏头痛，注意休息", "偏头痛，多休息")     # {"word_f1": 0.75, "bleu_1": ..., ..., "rouge_l": ...}
    dei(score=0.8, turns=6, mean_tokens=60)             # 0.097

All of one pair of texts, in [0, 1], on the words jieba finds (NFKC, lower case, without punctuation), Chinese or
English; 0 where either text has no words. BLEU is sacrebleu's of a sentence, up to n words in a row, orders the text is
too short for left out (effective order) and no match smoothed (exp): a mean over samples is not BLEU of a corpus.
ROUGE is the F-measure of rouge-score, without stemming. DoctorAgent-RL counts characters of Chinese and a single order
of BLEU, so its BLEU and ROUGE are not comparable with these. They say how alike words are, not who is right.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache
from importlib import import_module
from typing import Any

ALPHA, BETA = 1.0, 0.01  # of DEI: the price of a turn, and of a token
ROUGES = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}


def words(text: str) -> list[str]:
    """The words of a text; punctuation is none."""
    found = _jieba().cut(unicodedata.normalize("NFKC", text).lower())
    return [word for word in found if any(map(str.isalnum, word))]


def word_f1(text: str, reference: str) -> float:
    """The F1 of the words in common, each as often as both have it."""
    said, gold = Counter(words(text)), Counter(words(reference))
    return 2 * (said & gold).total() / max(1, said.total() + gold.total())


def bleu(text: str, reference: str) -> dict[str, float]:
    """`bleu_1` to `bleu_4`."""
    said, gold = " ".join(words(text)), [" ".join(words(reference))]
    return {
        f"bleu_{n}": _bleu(n).sentence_score(said, gold).score / 100 if said and gold[0] else 0.0 for n in range(1, 5)
    }


def rouge(text: str, reference: str) -> dict[str, float]:
    """`rouge_1`, `rouge_2` and `rouge_l`."""
    scores = _rouge().score(reference, text)
    return {name: float(scores[theirs].fmeasure) for name, theirs in ROUGES.items()}


def text_overlap(text: str, reference: str) -> dict[str, float]:
    """All of the above by name."""
    return {"word_f1": word_f1(text, reference), **bleu(text, reference), **rouge(text, reference)}


def dei(score: float, turns: float, mean_tokens: float) -> float:
    """Diagnostic efficiency index, as DoctorAgent-RL's evaluation has it: score² / (alpha turns + beta tokens a turn).

    Raises ValueError: neither turns nor tokens.
    """
    price = ALPHA * turns + BETA * mean_tokens
    if price <= 0:
        raise ValueError(f"{turns} turns of {mean_tokens} tokens; expected a dialogue")
    return score**2 / price


@cache
def _jieba() -> Any:
    import_module("jieba").setLogLevel("ERROR")
    return import_module("jieba").Tokenizer()


@cache
def _bleu(order: int) -> Any:
    kind = import_module("sacrebleu.metrics").BLEU
    return kind(tokenize="none", max_ngram_order=order, effective_order=True)


class _Words:
    """What rouge-score takes as a tokenizer."""

    tokenize = staticmethod(words)


@cache
def _rouge() -> Any:
    return import_module("rouge_score.rouge_scorer").RougeScorer([*ROUGES.values()], tokenizer=_Words())
