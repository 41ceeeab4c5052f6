"""The texts that an LLM judge reads about this agent's answers, from `judge_words.toml`."""

import json

from common.toml import table_beside
from scoring.case import Case
from scoring.llm_judge import JudgeWords

# Characters of each text shown to the judge
LONGEST_ANSWER = 4_000
LONGEST_TEXT = 6_000


def material(case: Case) -> dict[str, str | None]:
    """Return what the judge is shown, each text cut to a length."""
    return {
        "问题": case.question[:LONGEST_TEXT],
        "参考答案": case.reference[:LONGEST_TEXT] or None,
        "数据库依据": json.dumps(case.gold, ensure_ascii=False)[:LONGEST_TEXT]
        if case.gold
        else None,
        "工具返回的数据": "\n".join(case.context)[:LONGEST_TEXT] or None,
        "回答": case.answer[:LONGEST_ANSWER],
    }


_WORDS = table_beside(__file__)
WORDS = JudgeWords(**_WORDS | {"material": material, "known_case": Case(**_WORDS["known_case"])})
