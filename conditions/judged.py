"""Measures of a diagnosis that a judge valued beside the rule."""

RIGHT_FROM = 0.5  # of a value of a diagnosis


def beside_the_rule(rule: float, judged: float) -> dict[str, float]:
    """Return its values by the rule and by the judge, and whether both call it right or wrong."""
    same = (rule >= RIGHT_FROM) == (judged >= RIGHT_FROM)
    return {
        "diagnosis_by_rule": rule,
        "diagnosis_by_judge": judged,
        "diagnosis_agreement": float(same),
    }
