"""mediQ's cases (`all_dev_good.jsonl`, `all_craft_md.jsonl`): a question with options, and the
atomic facts that a patient answers from.

Source: https://github.com/stellalisy/mediQ, CC BY 4.0.
"""

import re

from conditions.published.cases import (
    PublishedCase,
    Reader,
    Record,
    UnusableCase,
    age_of,
    right_letters,
    sex_of,
)

NUMBER = re.compile(r"^\s*\d+\s*[.)]\s*")


def choice(row: Record, number: int) -> PublishedCase:
    """Return the case of a question. The doctor knows the first item of the context at the start."""
    options = row["options"]
    if not isinstance(options, dict) or len(options) < 2:
        raise UnusableCase("have no right option")
    try:
        right = right_letters(row["answer_idx"], options)
    except (ValueError, TypeError):
        raise UnusableCase("have no right option") from None
    answer = row["answer"]
    told = {str(one).strip() for one in (answer if isinstance(answer, list) else [answer])}
    texts = {str(options[letter]).strip() for letter in right.split(", ")}
    if told != texts and not (len(texts) > 1 and all(text in str(answer) for text in texts)):
        raise UnusableCase("have an answer that is not the text of their option")
    facts = [NUMBER.sub("", fact).strip() for fact in row["facts"] or [] if isinstance(fact, str)]
    if not row["context"] or not any(facts):
        raise UnusableCase("have no facts")
    start = " ".join(str(row["context"][0]).split())
    known = "\n".join(filter(None, facts))
    return PublishedCase(
        id=str(row.get("id", number)),
        complaint=start,
        summary=known,
        diagnosis="; ".join(sorted(told)),
        age=age_of(known),
        sex=sex_of(known),
        kind="options",
        question=str(row["question"]).strip(),
        options={str(name): str(text) for name, text in options.items()},
        right=right,
    )


READERS = (
    Reader(
        "mediQ",
        frozenset({"question", "options", "answer", "answer_idx", "context", "facts"}),
        choice,
    ),
)
