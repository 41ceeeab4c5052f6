"""What an LLM judge reads about this agent's conclusions. The words are in judge_words.toml."""

from common.toml import table_beside
from scoring.case import Case
from scoring.llm_judge import JudgeWords

LONGEST = 3_000  # characters of each text shown to the judge


def material(case: Case) -> dict[str, str | None]:
    """Return the texts that the judge reads, each cut to a length."""
    return {
        "主诉": case.question[:LONGEST],
        "病历": "\n".join(case.context)[:LONGEST] or None,
        "标准诊断与建议": case.reference[:LONGEST],
        "医生的结论": case.answer[:LONGEST],
    }


_WORDS = table_beside(__file__)
WORDS = JudgeWords(**_WORDS | {"material": material, "known_case": Case(**_WORDS["known_case"])})
