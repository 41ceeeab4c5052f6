"""The simulator that is a model: DiagGym's protocol of completions, with the gold diagnosis in the prompt.

A result is drawn once for a case and an examination and kept in LLM_CACHE. A text that names the
diagnosis is drawn again, at most DRAWS times in all, then withheld.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from common.llm.client import open_cache
from common.llm.endpoint import post, without_secrets
from common.llm.errors import LLMError, clean
from common.llm.retry import Patience
from common.settings import reveal
from common.text_store import TextStore
from conditions.mention import mention
from conditions.orders import LONGEST, named
from diagnosis_agent.record_simulator import UNAVAILABLE, Result, ordered, repeated
from diagnosis_agent.settings import DiagnosisSettings
from diagnosis_agent.task import DiagnosisTask
from episodes.agent import SERVED_NAME
from episodes.episode import AgentError, ServiceError
from episodes.outcomes import EpisodeError
from episodes.partner_agent import partner_model

# The words of DiagGym's models; weights know them, so none may change.
HEADER = "\nThe following summarizes the results from the patient's medical examination:\n"
SEPARATOR = "<SEP>"
# Rows of the reference have both
HISTORY_END = re.compile(r"Physical Exam:|(?:^|\n)Final Diagnosis:")
STOPS = (SEPARATOR, "<endoftext>")
LIMITS = {"max_tokens": 512, "stop": STOPS}
END = re.compile("|".join((*STOPS, r"\nExam name:")))

VERSION = 1  # of what is asked: raised where kept results are no longer what would be drawn
ATTEMPTS = 4  # how often it is asked
LONGEST_WAIT = 5.0  # seconds between two requests, at most
DRAWS = 3
REDRAWN_AT = 1.0  # at temperature 0 the same text would come again
MODEL_NAMES = "the name its endpoint serves it by"
CAUSES = {"malformed": "simulator_malformed", "timeout": "simulator_timeout"}
SEVERAL = re.compile(r"[,;+&]|\band\b")
CHAT_TOKEN = re.compile(r"<\|[^|]{0,40}\|>")
# As diagnosis_agent/task.py writes it
RANGE = re.compile(r" \(reference range: (.+)\)\Z", re.DOTALL)
WITHHELD = "The report of this examination is not released."
KNOWN = DiagnosisTask(
    id="known",
    question="Cough and fever.",
    reference="pneumonia",
    text="A man of 40 with cough and fever.",
)


def context(task: DiagnosisTask) -> str:
    """Return the text that every prompt about a case begins with."""
    history = HISTORY_END.split(task.text, maxsplit=1)[0].strip()
    return f"{history}\n\nFinal Diagnosis:\n{task.reference}{HEADER}"


def opening(name: str, usual: str = "") -> str:
    """Return an event up to its results. `usual` is the reference range."""
    shown = f"Reference Range:\n{usual}\n" if usual else ""
    return f"Exam name:\n{name}\n{shown}Exam results:\n"


def split_range(text: str) -> tuple[str, str]:
    """Return the results and the reference range of a recorded text, or "" if it has no range."""
    found = RANGE.search(text)
    return (text[: found.start()], found[1]) if found else (text, "")


def prompt_for(task: DiagnosisTask, name: str, past: Iterable[Result]) -> str:
    """Return the prompt that results continue: the case, earlier results, the examination."""
    events = ""
    for one in past:
        if one.kind in ("recorded", "normal"):
            events += f"{opening(one.name)}{split_range(one.text)[0]}{SEPARATOR}"
    return context(task) + events + opening(name)


class LLMSimulator:
    """A model behind SIMULATOR_BASE_URL, or, `served`, at the address of the run's own service.

    Raises AgentError: the model or its address is missing.
    """

    def __init__(
        self, settings: DiagnosisSettings, name: str, address: str | None, evaluating: bool = False
    ) -> None:
        self.settings = settings
        self.name = name
        self.model = partner_model("simulator", name, settings, MODEL_NAMES)
        self.url = address if name == "served" else settings.simulator_base_url
        if not self.url and name != "served":
            raise AgentError(f"--simulator {name} needs an address; set SIMULATOR_BASE_URL")
        self.temperature = 0.0 if evaluating else 1.0  # as DiagGym evaluates and trains
        self.description: Mapping[str, str] = {
            "simulator": name, "simulator_model": self.model, "simulator_temperature": f"{self.temperature:g}",
        }  # fmt: skip
        self.patience = Patience(ATTEMPTS, settings.simulator_timeout, LONGEST_WAIT)
        self._same: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @cached_property
    def kept(self) -> TextStore:
        return open_cache(self.settings.llm_cache)

    @cached_property
    def source(self) -> list[str]:
        """Whose results these are: another run may serve other weights by the same name."""
        if self.name != "served":
            return [self.model, str(self.url)]
        found = [self.model]
        for file in sorted(Path(self.model).rglob("*.safetensors")):
            facts = file.stat()
            found.append(f"{file.name}/{facts.st_size}/{facts.st_mtime_ns}")
        return found

    async def answer(self, task: DiagnosisTask, name: str, past: Sequence[Result]) -> Result:
        found = examination(task, name, past)
        if not found:
            return Result(" ".join(name.split())[:LONGEST], UNAVAILABLE, "unavailable")
        if earlier := repeated(found, past):
            return earlier
        case = [VERSION, self.source, self.temperature, context(task), found.casefold()]
        key = hashlib.sha256(json.dumps(case).encode()).hexdigest()
        async with self._same.setdefault(key, asyncio.Lock()):
            try:
                text = self.kept.get(key)
                if text is None:
                    text = self.kept.keep(key, await self.draw(task, found, past))
            except LLMError as error:
                cause = CAUSES.get(error.cause, "simulator_failed")
                raise EpisodeError(cause, str(error)) from None
        return Result(found, text, "recorded") if text else Result(found, WITHHELD, "withheld")

    async def check(self) -> None:
        """Ask for an invented patient's result. Raises ServiceError, LLMError: no cache."""
        self.kept.count()
        try:
            await self.draw(KNOWN, "complete blood count", [])
        except LLMError as error:
            raise ServiceError(
                f"the simulator gives no usable result ({error}); start it, look at "
                "SIMULATOR_MODEL, SIMULATOR_BASE_URL and SIMULATOR_API_KEY, or choose record"
            ) from None

    async def draw(self, task: DiagnosisTask, name: str, past: Sequence[Result]) -> str:
        """Return a new result that does not name the diagnosis, unless the case does, or "" after
        DRAWS.

        No seed is sent: it ends vLLM's CPU engine, which cannot wind a request's generator back.
        Raises LLMError: the model failed.
        """
        secret = mention(task.names)
        hidden = not secret.search(task.question)
        for draw in range(DRAWS):
            temperature = REDRAWN_AT if draw else self.temperature
            body = {"prompt": prompt_for(task, name, past), "temperature": temperature, **LIMITS}
            text = await self.patience.ask(partial(self.completion, body), self.model)
            if not (hidden and secret.search(text)):
                return text
        return ""

    async def completion(self, body: Mapping[str, Any]) -> str:
        """Return the results in one completion. Raises LLMError, also where there are none."""
        if not self.url:
            raise LLMError("the simulator's model is not served yet", "setup")
        served = self.name == "served"
        model = SERVED_NAME if served else self.model.removeprefix("openai/")
        key = None if served else reveal(self.settings.simulator_api_key)
        url = f"{self.url.rstrip('/')}/completions"
        limit = self.settings.simulator_timeout
        reply = await post(url, {"model": model, **body}, timeout=limit, key=key)
        text = ""
        with suppress(LookupError, TypeError, AttributeError):
            result = END.split(reply["choices"][0]["text"], maxsplit=1)[0]
            text = CHAT_TOKEN.sub(" ", result).strip()
        if not text:
            who = without_secrets(self.url)
            words = clean(str(reply), key)
            raise LLMError(f"{who}: expected a completion, got {words}", "malformed")
        return text


def examination(task: DiagnosisTask, name: str, past: Sequence[Result]) -> str | None:
    """Return the name under which a model is asked for an ordered examination, or None.

    A case of the tables has only their examinations. Other cases use the order's words, unless they
    are several names.
    """
    if task.condition:
        return ordered(task, name)
    words = " ".join(CHAT_TOKEN.sub(" ", name).split())
    several = [named(part) for part in SEVERAL.split(words)]
    are_several = len(several) > 1 and all(several) and not named(words)
    if not words or len(words) > LONGEST or are_several:
        return None
    return next((one.name for one in past if one.name.casefold() == words.casefold()), words)
