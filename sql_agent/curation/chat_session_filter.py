"""Extract single-turn candidate questions from chat exports, with personal data masked.

    .venv/bin/python utils/chat_session_filter.py chats.json --output outputs/candidates.jsonl --report outputs/report.json

In: JSON, JSONL, CSV, TSV, Excel or Parquet. Out: JSONL rows {id, question, session, masked}.
`masked` lists the kinds of replaced personal data. Only users' messages are taken. Greetings,
thanks, texts without a question or of unfitting length, follow-ups and repetitions are dropped and
counted by reason. OUT.dropped.jsonl has each of them, masked and without the end of a long text:
{reason, question, session, role}, of an unreadable record {reason, where, problem}. The same
question always has the same id.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from common.command import Failure, new_parser, run_command
from common.files import refuse_existing, refuse_inputs, replacing
from common.jsonl import write_jsonl
from common.terminal import watched
from common.toml import table_beside
from scoring.text import words_only
from sql_agent.curation.chat_export import OTHER_ROLES, USER_ROLES, Message, read_messages
from sql_agent.curation.llm_filter import beside, digest
from sql_agent.curation.personal_data import mask

SHOWN = 10  # unknown roles named in the report
# Characters of a dropped text that are written, and those behind them that are masked with it: a
# number that is cut in two would not be recognised
WRITTEN = 1_000
BEHIND = 200
SHORTEST, LONGEST = 4, 200  # characters of a question
SPARE = 1_000  # characters of greetings and pictures around a question of the allowed length
NEEDED = 2  # least characters of a question without its general words

_TEXTS = table_beside(__file__, "chat_questions.toml")
_PARTS = {name: "|".join(text.split()) for name, text in _TEXTS["words"].items()}
_PARTS["marks"] = _TEXTS["marks"]
RE: dict[str, re.Pattern[str]] = {}
for _name, _text in _TEXTS["patterns"].items():
    _filled = re.sub(r"{{(\w+)}}", lambda part: _PARTS[part[1]], _text)
    RE[_name] = re.compile(_filled, re.IGNORECASE)


def judge(text: str) -> tuple[str, str | None]:
    """Return the text without greeting and thanks, and why it is no question that stands alone.

    Doubtful questions pass, because filter_with_llm looks at each one.
    """
    if len(text) > 2 * LONGEST + SPARE:
        return text, "too_long"
    text = RE["media"].sub(" ", text).strip()
    if not re.search(r"[^\W_]", text):
        return text, "empty"
    if RE["only_greeting"].fullmatch(text):
        return text, "greeting"
    if RE["only_thanks"].fullmatch(text):
        return text, "thanks"
    text = RE["trailing"].sub("", RE["leading"].sub("", text)).strip()
    if len(text) > LONGEST:
        return text, "too_long"
    short = "too_short" if len(text) < SHORTEST else None
    if not RE["asking"].search(text) and not RE["topic"].search(text):
        return text, short or "not_a_question"
    # A follow-up lacks a subject, or points back before it names one
    alone = RE["following"].sub("", text)
    before = RE["back"].split(alone, maxsplit=1)[0]
    if RE["ellipsis"].match(alone) and not RE["concrete"].search(alone):
        return text, "follow_up"
    return text, "follow_up" if len(RE["general"].sub("", before)) < NEEDED else short


class Candidates:
    """Yields candidate questions, and counts what it drops and masks."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._user_roles = {role.strip().lower() for role in options.user_role}
        self._seen: set[str] = set()
        self.dropped: Counter[str] = Counter()
        self.masked: Counter[str] = Counter()
        self.unknown_roles: Counter[str] = Counter()

    def rows(self, dropped: IO[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of candidates, and write the other messages to `dropped`."""
        messages = read_messages(self._options.input, self._options.encoding)
        for message in watched(messages, "reading", "messages"):
            made = self._row_or_reason(message)
            if isinstance(made, dict):
                yield made
                continue
            self.dropped[made] += 1
            row = {"question": message.text, "session": message.session, "role": message.role}
            if message.problem:
                row = {"where": message.where, "problem": message.problem}
            masked = {name: _masked(text) for name, text in row.items()}
            dropped.write(json.dumps({"reason": made} | masked, ensure_ascii=False) + "\n")

    def _row_or_reason(self, message: Message) -> dict[str, Any] | str:
        if message.problem:
            return "unreadable"
        if message.role not in (self._user_roles or USER_ROLES):
            if self._user_roles or message.role in OTHER_ROLES:
                return "not_user"
            self.unknown_roles[mask(message.role)[0][:30]] += 1
            return "unknown_role"
        text, reason = judge(message.text)
        if reason:
            return reason
        question, kinds = mask(text)
        identity = digest(words_only(question))[:16]
        if identity in self._seen:
            return "duplicate"
        self._seen.add(identity)
        self.masked.update(kinds)
        return {
            "id": f"chat-{identity}",
            "question": question,
            "session": _masked(message.session),
            "masked": sorted(set(kinds)),
        }


def _masked(text: str) -> str:
    masked, _ = mask(text[: WRITTEN + BEHIND])
    if len(text) > WRITTEN + BEHIND:
        masked = masked[:-BEHIND] + "…"
    elif len(masked) > WRITTEN:
        masked = masked[:WRITTEN] + "…"
    return masked.encode(errors="replace").decode()  # half of a surrogate pair cannot be written


def filter_messages(arguments: argparse.Namespace) -> None:
    candidates = Candidates(arguments)
    dropped_file = beside(arguments.output, "dropped")
    outputs = [file for file in (arguments.output, dropped_file, arguments.report) if file]
    refuse_inputs(outputs, [arguments.input])
    for file in outputs:
        refuse_existing(file, arguments.force)
    with replacing(dropped_file) as draft, draft.open("w", encoding="utf-8") as dropped:
        kept = write_jsonl(arguments.output, candidates.rows(dropped), arguments.force)
    report: dict[str, Any] = {
        "messages": kept + candidates.dropped.total(),
        "kept": kept,
        "dropped": dict(candidates.dropped.most_common()),
        "masked": dict(candidates.masked.most_common()),
        "unknown_roles": dict(candidates.unknown_roles.most_common(SHOWN)),
    }
    if arguments.report:
        write_jsonl(arguments.report, [report], arguments.force)
    print(
        f"{report['messages']:,} messages, {report['kept']:,} candidate questions",
        *(f"{count:>12,}  dropped: {reason}" for reason, count in report["dropped"].items()),
        *(f"{count:>12,}  masked: {kind}" for kind, count in report["masked"].items()),
        sep="\n",
        file=sys.stderr,
    )
    if candidates.unknown_roles and not report["kept"]:
        roles = ", ".join(map(repr, report["unknown_roles"]))
        raise Failure(
            f"no known role asks; the roles are {roles}; give --user-role ROLE for each who asks, and "
            "--user-role '' where no column names the role"
        )
    if report["messages"] == report["dropped"].get("unreadable", 0):
        raise Failure(f"{arguments.input} holds no readable message")


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("input", type=Path, help="the export: .json, .jsonl, .csv, .tsv, .xlsx, .xls or .parquet")
    questions = "JSONL of candidate questions; the others: OUT.dropped.jsonl"
    add("--output", type=Path, required=True, help=questions)
    add("--report", type=Path, help="also write the counts as JSON")
    add("--encoding", help="of a text file; default: found out")
    add("--user-role", action="append", default=[], help="only this role asks (may be repeated)")
    add("--force", action="store_true", help="replace existing outputs")
    arguments = parser.parse_args(argv)
    return run_command("chat_session_filter", lambda: filter_messages(arguments))


if __name__ == "__main__":
    sys.exit(main())
