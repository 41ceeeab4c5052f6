"""A judge for tests."""

from scoring.case import Case, Verdict


class Fixed:
    """Always says the same, and keeps what it was asked."""

    name = "fixed"

    def __init__(self, verdict: Verdict) -> None:
        self.verdict, self.asked = verdict, list[Case]()

    async def judge(self, case: Case) -> Verdict:
        self.asked.append(case)
        return self.verdict
