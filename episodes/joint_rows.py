"""The rows of several agents in one list. Each row names its agent and holds that agent's own row."""

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from episodes.agent import Agent, Row
from episodes.episode import AgentError
from episodes.row_files import read_rows

# Columns that no row of a user's file has
WHOSE = "__agent__"
WEIGHT = "__weight__"


def read(path: Path, members: Mapping[str, Agent]) -> list[Row]:
    """Return the rows of NAME=FILE,NAME=FILE, agents taking turns, or those that a run wrote.
    Raises AgentError: an agent has no file there, or an unusable one.
    """
    form = ",".join(f"{name}=FILE" for name in members)
    if "=" not in str(path) and path.suffix == ".jsonl":
        return written(path, members, form)
    parts: list[list[Row]] = []
    for name, file in named_files(str(path), members, form).items():
        own: list[Row] = []
        for at, row in enumerate(members[name].rows(file)):
            own.append({"id": f"{name}/{at}", WHOSE: name, "task_type": name, "row": row})
        parts.append(own)
    turns = chain.from_iterable(zip_longest(*parts))
    return [row for row in turns if row is not None]


def written(path: Path, members: Mapping[str, Agent], form: str) -> list[Row]:
    """Return the rows of a file that a run of these agents wrote. Raises AgentError: of others."""
    rows = read_rows(path, "+".join(sorted(members)))
    for row in rows:
        if row.get(WHOSE) not in members or "row" not in row:
            raise AgentError(
                f"{path} has rows of none of {', '.join(members)}; "
                f"expected what such a run wrote, or {form}"
            )
    return rows


def named_files(text: str, members: Mapping[str, Agent], form: str) -> dict[str, Path]:
    """Return each agent's file of a text in this form. Raises AgentError: it has another one."""
    files: dict[str, Path] = {}
    for part in text.split(","):
        name, equals, file = part.partition("=")
        if not equals or name not in members or name in files:
            raise AgentError(f"{part!r}: expected a file for each agent, such as {form}")
        files[name] = Path(file)
    if missing := [name for name in members if name not in files]:
        raise AgentError(f"no file is given for {', '.join(missing)}; add {missing[0]}=FILE")
    return files


def weighted(rows: Sequence[Row], weights: Mapping[str, float]) -> list[Row]:
    """Return rows that also say how often their agent's turn comes."""
    return [{**row, WEIGHT: weights[row[WHOSE]]} for row in rows]


def of(name: str, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one agent, as it wrote them."""
    return [row["row"] for row in rows if row[WHOSE] == name]
