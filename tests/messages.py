"""What a test asks of a message: the values it must name, not its sentence."""


def missing(text: str, *values: object) -> list[str]:
    """Return the values that a message does not name."""
    return [str(value) for value in values if str(value) not in text]
