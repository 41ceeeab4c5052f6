"""Map a reward model's raw score to [0, 1]. The file of REWARD_SCALE holds

{"kind": "logistic", "center": -0.4, "scale": 1.3}

`center` is the raw score of an answer that is worth a half. Three times `scale` above it an answer
is worth 0.95.
"""

import math
from os import PathLike
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from common.settings import SettingsError


class LogisticScale(BaseModel, extra="forbid", frozen=True, strict=True):
    """1 / (1 + exp(-(raw - center) / scale))."""

    kind: Literal["logistic"] = "logistic"
    center: FiniteFloat
    scale: Annotated[FiniteFloat, Field(gt=0)]

    def apply(self, raw: float) -> float:
        """Return the score in [0, 1], which grows with `raw`. Raises SettingsError: not finite."""
        if not math.isfinite(raw):
            raise SettingsError(f"the raw score is {raw}; expected a finite number")
        # tanh has no overflow where exp has one; both are the same function.
        return 0.5 + 0.5 * math.tanh((raw / 2 - self.center / 2) / self.scale)


def load_scale(path: str | PathLike[str]) -> LogisticScale:
    """Return the scale of a JSON file. Raises SettingsError: the file holds none."""
    try:
        return LogisticScale.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        reason = error.strerror
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = f"{where}: {first['msg']}" if where else first["msg"]
    raise SettingsError(
        f"REWARD_SCALE: {path} cannot be used ({reason}); "
        'expected {"kind": "logistic", "center": NUMBER, "scale": NUMBER} (docs/settings.md)'
    )
