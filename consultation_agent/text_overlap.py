"""How much a text has in common with a reference: word-F1, BLEU-1 to 4, ROUGE-1, 2 and L; and DEI.

    text_overlap("偏头痛，注意休息", "偏头痛，多休息")     # {"word_f1": 0.67, "bleu_1": 0.67, ...}
    dei(score=0.8, turns=6, mean_tokens=60)             # 0.097

All of one pair of texts, in [0, 1], on the words jieba finds (NFKC, lower case, without
punctuation), Chinese or English; 0 where either text has no words. BLEU is sacrebleu's of a
sentence, up to n words in a row: orders that the text is too short for are left out (effective
order), an order without a match is smoothed (exp); its mean over samples is not BLEU of a corpus.
ROUGE is the F-measure of rouge-score, without stemming; ROUGE-2 of a single word is 0.
DoctorAgent-RL counts characters of Chinese and single orders of BLEU: its BLEU and ROUGE cannot be
compared with these.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache
from importlib import import_module
from typing import Any

from common.word_lists import keep_private

ALPHA, BETA = 1.0, 0.01  # of DEI: the price of a turn, and of a token
BLEUS = {f"bleu_{order}": order for order in range(1, 5)}
ROUGES = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}


def words(text: str) -> list[str]:
    """Return the words of a text, without punctuation."""
    found = _jieba().cut(unicodedata.normalize("NFKC", text).lower())
    return [word for word in found if any(map(str.isalnum, word))]


def word_f1(text: str, reference: str) -> float:
    """Return the F1 of the common words, counted with repetitions."""
    said = Counter(words(text))
    gold = Counter(words(reference))
    return 2 * (said & gold).total() / max(1, said.total() + gold.total())


def bleu(text: str, reference: str) -> dict[str, float]:
    """Return `bleu_1` to `bleu_4` by name."""
    said = " ".join(words(text))
    gold = [" ".join(words(reference))]
    return {
        name: min(1.0, _bleu(order).sentence_score(said, gold).score / 100)
        for name, order in BLEUS.items()
    }


def rouge(text: str, reference: str) -> dict[str, float]:
    """Return `rouge_1`, `rouge_2` and `rouge_l` by name."""
    scores = _rouge().score(reference, text)
    return {name: float(scores[theirs].fmeasure) for name, theirs in ROUGES.items()}


def text_overlap(text: str, reference: str) -> dict[str, float]:
    """Return word F1, BLEU and ROUGE by name."""
    return {"word_f1": word_f1(text, reference), **bleu(text, reference), **rouge(text, reference)}


def dei(score: float, turns: float, mean_tokens: float) -> float:
    """Return the diagnostic efficiency index of DoctorAgent-RL's evaluation: score² / (alpha turns
    + beta tokens a turn).

    Raises ValueError: neither turns nor tokens.
    """
    price = ALPHA * turns + BETA * mean_tokens
    if price <= 0:
        raise ValueError(f"{turns} turns of {mean_tokens} tokens; expected a dialogue")
    return score**2 / price


@cache
def _jieba() -> Any:
    jieba: Any = import_module("jieba")
    jieba.setLogLevel("ERROR")
    tokenizer = jieba.Tokenizer()
    keep_private(tokenizer)
    return tokenizer


@cache
def _bleu(order: int) -> Any:
    kind = import_module("sacrebleu.metrics").BLEU
    return kind(tokenize="none", max_ngram_order=order, effective_order=True)


class _Words:
    """A tokenizer for rouge-score."""

    tokenize = staticmethod(words)


@cache
def _rouge() -> Any:
    return import_module("rouge_score.rouge_scorer").RougeScorer(
        [*ROUGES.values()], tokenizer=_Words()
    )
