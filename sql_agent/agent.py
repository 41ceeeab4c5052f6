"""The SQL agent: answers medical questions by querying a database of drugs and diseases."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from random import Random

from common.command import UsageError
from common.settings import ROOT, Settings
from episodes.agent import SCORE, Agent, Column, Environment, Lessons, Options, Record, Row, Sizes
from episodes.episode import AgentError, Conversation
from episodes.shown import Shown, transcript
from sql_agent import facts, row_checks
from sql_agent.ehrsql.questions import PreparedSet, prepare
from sql_agent.gold.draft import fill_answers
from sql_agent.gold_episodes import gold_conversations
from sql_agent.intake.question_files import COLUMNS, load_rows, made_from
from sql_agent.prompts import TOOL
from sql_agent.settings import SqlSettings
from sql_agent.task import SqlTask, task_of

# What the bundled model was made from. It is found by name, because recipes stand above agents.
RECIPE = "recipes.drugs.lessons"
MADE_FROM = ("database", "ehrsql")  # what a run's folder says of its rows besides
FILES = ("data", "train_file", "val_file")  # the flags of commands that name rows


class SqlAgent(Agent):
    """Questions and gold of `data/*.parquet`, one tool, a judge."""

    name = "sql"
    tools = (TOOL,)
    splits: Mapping[str, Path] = {
        split: ROOT / "data" / f"{split}.parquet" for split in ("train", "val", "test")
    }
    settings = SqlSettings
    columns = (
        SCORE,
        Column("execution", "execution_accuracy", interval=True),
        Column("SQL ok", "sql_ok"),
        Column("evidence", "evidence_recall"),
        Column("RS(0)", "RS(0)", interval=True),  # of EHRSQL
        Column("RS(10)", "RS(10)"),
    )
    # Episodes are shorter here, so that the demo plays twice the steps in its minutes
    demo = ("trainer.total_training_steps=40",)

    def sizes(self, device: str) -> Sizes:
        if device == "cpu":  # the tiny model has 1,024 positions
            return Sizes(prompt=640, response=384, reply=96)
        # 3 x 768 tokens generated, 2 x about 3,000 read: a tool answer of at most 8,000 characters
        return Sizes(prompt=2048, response=8192, reply=768)

    def rows(self, path: Path) -> list[Row]:
        rows = load_rows(path)
        if {"query", "is_impossible"} <= rows[0].keys():
            raise AgentError(
                f"{path} has questions of EHRSQL; give the schema of its database, which is drawn "
                "for them: --schema mimic_iii.sql"
            )
        made = {}
        if database := made_from(path):
            made["database"] = database
        if prepared := PreparedSet.of(Path(path)):
            made["ehrsql"] = str(prepared.folder)
        known = (*COLUMNS, *MADE_FROM)
        return [{column: row[column] for column in known if column in row} | made for row in rows]

    def task(self, row: Row, settings: Settings) -> SqlTask:
        return task_of(row)

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        if options.get("schema"):
            from sql_agent.ehrsql.environment import EhrsqlEnvironment

            return EhrsqlEnvironment(options["schema"])
        from sql_agent.environment import SqlEnvironment

        return SqlEnvironment(settings.of(SqlSettings).under(options), evaluating)

    def add_flags(self, parser: ArgumentParser) -> None:
        what = "tables the agent may read; default: DATABASE_TABLES"
        parser.add_argument("--tables", dest="database_tables", metavar="A,B", help=what)
        add = parser.add_mutually_exclusive_group().add_argument
        what = "EHRSQL's schema, for files of its questions (docs/sql.md)"
        add("--schema", type=_file, metavar="FILE", help=what)
        what = "EHRSQL's own database in the place of a drawn one"
        add("--database", type=_file, metavar="FILE", help=what)

    def complete(self, arguments: Namespace) -> None:
        """Replace EHRSQL's files with the rows made of them, and the schema with their folder."""
        given = vars(arguments)
        files = {name: Path(given[name]) for name in FILES if given.get(name)}
        if arguments.schema or arguments.database:
            for name, file in files.items():
                if file.suffix == ".parquet":
                    raise UsageError(
                        f"{file} has no questions of EHRSQL, which --schema and --database are "
                        f"for; give a file of them as --{name.replace('_', '-')}"
                    )
            different = [*dict.fromkeys(files.values())]
            prepared = prepare(different, arguments.schema, arguments.database)
            rows = dict(zip(different, prepared.questions, strict=True))
            given |= {name: rows[file] for name, file in files.items()}
            arguments.schema = prepared.folder
            return
        sets = {file: PreparedSet.of(file) for file in files.values()}
        folders = {prepared.folder for prepared in sets.values() if prepared}
        if len(folders) > 1 or (folders and None in sets.values()):
            raise UsageError(
                f"{' and '.join(map(str, files.values()))} are not of one set; EHRSQL's questions are "
                "trained and validated on one database: give both files with one --schema"
            )
        if folders:
            [arguments.schema] = folders

    def check(
        self,
        rows: Mapping[str, Sequence[Row]],
        settings: Settings,
        options: Options,
        plays: bool = True,
    ) -> list[str]:
        others = [name for name, part in rows.items() if not part[0].get("ehrsql")]
        if len(others) == len(rows):
            return row_checks.check(rows, settings.of(SqlSettings).under(options), plays)
        if others:
            raise AgentError(f"{others[0]}: no questions of EHRSQL; give a file of them, too")
        if not options.get("schema"):
            folder = next(iter(rows.values()))[0]["ehrsql"]
            raise AgentError(f"the questions are of {folder}; give a file of that folder")
        return [f"{name}: {len(part)} questions of EHRSQL" for name, part in rows.items()]

    def failure(self, record: Record) -> str:
        return facts.failure(record)

    def shown(self, record: Record) -> Sequence[Shown]:
        return list(map(facts.shown, transcript(record)))

    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> Iterable[Conversation]:
        if role != "policy":
            return super().demonstrations(role, rows, settings)
        if rows and rows[0].get("ehrsql"):
            from sql_agent.ehrsql.environment import ehrsql_conversations

            return ehrsql_conversations(Path(rows[0]["ehrsql"]), [task_of(row) for row in rows])
        own = settings.of(SqlSettings)
        answered = [*rows]
        fill_answers(answered, own.database_url, own.tables)
        tasks = [task_of(row) for row in answered]
        return gold_conversations(tasks, own.database_url, own.tables)

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        url = settings.of(SqlSettings).database_url
        made: Lessons = import_module(RECIPE).lessons(rows, url, right, flawed, random)
        return made


def _file(text: str) -> Path:
    """Return an absolute path, because other processes run elsewhere."""
    return Path(text).absolute()


AGENT = SqlAgent()
