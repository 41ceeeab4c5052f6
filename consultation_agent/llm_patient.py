"""The patient that is a model: it reads a record without its diagnosis and one question, at temperature 0.

Replies of PATIENT_MODEL are kept in LLM_CACHE. What was asked before is found out here, by the facets
that the model says it mentioned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from common.llm.client import LLMClient, Message
from common.llm.endpoint import MOST_CONNECTIONS
from common.llm.errors import LLMError
from common.settings import reveal
from common.toml import table_beside
from conditions.mention import mention
from conditions.table import load_tables
from consultation_agent.doctor_questions import SAID
from consultation_agent.recall import hidden, memories
from consultation_agent.record_patient import Exchange, Reply, again, told
from consultation_agent.settings import ConsultationSettings
from consultation_agent.task import ConsultationTask
from episodes.agent import SERVED_NAME
from episodes.episode import ServiceError
from episodes.outcomes import EpisodeError
from episodes.partner_agent import partner_model

ATTEMPTS = 4  # how often it is asked
LONGEST_WAIT = 5.0  # seconds between two requests, at most
LONGEST_TEXT = 120  # characters of an answer: what follows would fill the doctor's context
LONGEST_NAME = 24
MOST_FACETS = 2  # one question tells of one thing, and of what accompanies it
MODEL_NAMES = "litellm's name of a model, such as openai/NAME"
CAUSES = {"malformed": "patient_malformed", "timeout": "patient_timeout"}
WORDS: dict[str, Any] = table_beside(__file__)
KNOWN = ConsultationTask(**WORDS["known_case"])
SEXES = {"female": "女", "male": "男"}


def _at_most(name: str, most: int) -> Any:
    return Field(json_schema_extra={name: most})


class Said(BaseModel):
    """The form of a model's reply. facets: names of lines of the record."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["informative", "unknown", "compound", "off_topic"]
    facets: Annotated[
        list[Annotated[str, _at_most("maxLength", LONGEST_NAME)]], _at_most("maxItems", MOST_FACETS)
    ]
    text: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1),
        _at_most("maxLength", LONGEST_TEXT),
    ]


class LLMPatient:
    """A model behind PATIENT_BASE_URL, or, `served`, at the address of the run's own service."""

    def __init__(self, settings: ConsultationSettings, name: str, address: str | None) -> None:
        self.settings = settings
        self.name = name
        self.model = partner_model("patient", name, settings, MODEL_NAMES)
        self.address = address
        self.words: dict[str, Any] = WORDS[name]
        self.description = {
            "patient": name,
            "patient_model": self.model,
            "patient_words": str(WORDS["version"]),
        }

    @cached_property
    def client(self) -> LLMClient:
        return self._connect(self.settings.llm_cache)

    def _connect(self, cache: Path | None) -> LLMClient:
        served = self.name == "served"
        if served and not self.address:
            raise LLMError("the patient's model is not served yet", "connection")
        return LLMClient(
            f"openai/{SERVED_NAME}" if served else self.model,
            base_url=self.address if served else self.settings.patient_base_url,
            api_key=None if served else reveal(self.settings.patient_api_key),
            # Not kept on disk: another run serves another model at the same address
            cache=None if served else cache,
            attempts=ATTEMPTS,
            longest_wait=LONGEST_WAIT,
            concurrency=MOST_CONNECTIONS,
            timeout=self.settings.patient_timeout,
        )

    async def check(self) -> None:
        """Ask an invented patient, past the cache. Raises ServiceError: no usable answer."""
        try:
            await self._ask(messages_for(KNOWN, "哪里疼？", self.words), kept=False)
        except EpisodeError as error:
            raise ServiceError(
                f"the patient gives no usable answer ({error}); start it, look at PATIENT_MODEL, "
                "PATIENT_BASE_URL and PATIENT_API_KEY, or choose --patient record"
            ) from None

    async def answer(
        self, task: ConsultationTask, question: str, asked: Sequence[Exchange]
    ) -> Reply:
        heard = clean(question)[: self.words["longest_question"]]
        if not heard:
            return Reply("off_topic", SAID["zh"]["off_topic"])
        open_words = "\n".join([task.question, question, *(earlier.question for earlier in asked)])
        unsaid = None if secret(task).search(open_words) else secret(task)
        said, leaked = await self._without(unsaid, messages_for(task, heard, self.words))
        text = " ".join(said.text.split())[:LONGEST_TEXT]
        tables = load_tables()
        names = {*tables.facets, *tables.symptoms, *tables.general}
        known = names if task.words else memories(task).keys()
        facets = tuple(dict.fromkeys(name for name in said.facets if name in known))[:MOST_FACETS]
        if said.kind == "off_topic":
            facets = ()
        mentioned = told(asked)
        if facets and mentioned.keys() >= {*facets}:
            return again(mentioned[facets[0]], task)
        for earlier in asked:
            if not facets and clean(earlier.question) == heard:
                return again(earlier.reply, task)
        return Reply(said.kind, text, facets, leaked)

    async def _without(
        self, unsaid: re.Pattern[str] | None, messages: list[Message]
    ) -> tuple[Said, bool]:
        said = await self._ask(messages)
        if not unsaid or not unsaid.search(said.text):
            return said, False
        first = {"role": "assistant", "content": said.model_dump_json()}
        said = await self._ask([*messages, first, {"role": "user", "content": WORDS["again"]}])
        text, times = unsaid.subn(WORDS["struck"], said.text)
        return said.model_copy(update={"text": text}), times > 0

    async def _ask(self, messages: list[Message], kept: bool = True) -> Said:
        try:
            client = self.client if kept else self._connect(None)
            return await client.ask(messages, Said, max_tokens=self.words["max_tokens"])
        except LLMError as error:
            raise EpisodeError(CAUSES.get(error.cause, "patient_failed"), str(error)) from None


def messages_for(task: ConsultationTask, question: str, words: dict[str, Any]) -> list[Message]:
    """Return a model's prompt: its part, the record without the diagnosis, the question."""
    record = "\n".join(f"{line}：{text}" for line, text in record_lines(task).items())
    asked = WORDS["asked"].format(complaint=task.opening, record=record)
    notes = secret(task).sub(WORDS["struck"], asked)
    return [
        {"role": "system", "content": words["system"].strip()},
        {"role": "user", "content": notes + question},
    ]


def record_lines(task: ConsultationTask) -> dict[str, str]:
    """Return the record's texts by "name（meaning）". A row without facets has earlier questions,
    or single sentences, in place of names.
    """
    if not task.words:
        remembered = {}
        for name, (by, text) in memories(task).items():
            remembered[name if by == text else f"{name}（{by}）"] = text
        return remembered
    tables = load_tables()
    meanings = {name: phrase.zh for name, phrase in tables.general.items()}
    meanings |= {name: facet.zh for name, facet in tables.facets.items()}
    meanings |= {name: symptom.ask[0] for name, symptom in tables.symptoms.items()}
    age = f"{task.age}岁" if task.age is not None else ""
    mentioned = {"age": age, "sex": SEXES.get(task.sex, "")}
    mentioned |= {name: "有" if there else "没有" for name, there in task.symptoms.items()}
    mentioned |= task.words
    lines = {}
    for name, text in mentioned.items():
        if text and name in meanings:
            lines[f"{name}（{meanings[name]}）"] = text
    return lines


def clean(text: str) -> str:
    """Return a question on one line, without invisible characters and chat tokens' brackets."""
    shown = [char if char.isprintable() and char not in "<>|" else " " for char in text]
    return " ".join("".join(shown).split())


def secret(task: ConsultationTask) -> re.Pattern[str]:
    """Return a pattern that finds the names of the diagnosis."""
    return mention(task.names or hidden(task))
