"""Map a reward model's raw score to [0, 1], as `utils/reward_scale.py` fits it. The file holds one
of

    {"kind": "quantile", "raw": [-3.1, -0.4, 2.2], "unit": [0.0, 0.5, 1.0]}
    {"kind": "logistic", "center": -0.4, "scale": 1.3}
"""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, FiniteFloat, TypeAdapter, ValidationError, model_validator

from common.settings import SettingsError


class _Map(BaseModel, extra="forbid", frozen=True, strict=True):
    def apply(self, raw: float) -> float:
        """Return the score in [0, 1], which grows with `raw`. Raises SettingsError: not finite."""
        if not math.isfinite(raw):
            raise SettingsError(f"the raw score is {raw}; expected a finite number")
        return min(1.0, max(0.0, self._value(raw)))

    def _value(self, raw: float) -> float:
        raise NotImplementedError


class QuantileScale(_Map):
    """Straight lines between the points (raw, unit), constant beyond them."""

    kind: Literal["quantile"] = "quantile"
    raw: list[FiniteFloat] = Field(min_length=2)
    unit: list[Annotated[FiniteFloat, Field(ge=0, le=1)]] = Field(min_length=2)

    @model_validator(mode="after")
    def _is_monotone(self) -> QuantileScale:
        if len(self.raw) != len(self.unit):
            raise ValueError(f"raw has {len(self.raw)} points, unit {len(self.unit)}")
        if any(left >= right for left, right in zip(self.raw, self.raw[1:], strict=False)):
            raise ValueError("raw must grow from point to point")
        if any(left > right for left, right in zip(self.unit, self.unit[1:], strict=False)):
            raise ValueError("unit must not fall")
        return self

    def _value(self, raw: float) -> float:
        import numpy

        # Halves: the distance of two finite numbers may be infinite, that of their halves is not.
        return float(numpy.interp(raw / 2, numpy.divide(self.raw, 2), self.unit))


class LogisticScale(_Map):
    """1 / (1 + exp(-(raw - center) / scale))."""

    kind: Literal["logistic"] = "logistic"
    center: FiniteFloat
    scale: Annotated[FiniteFloat, Field(gt=0)]

    def _value(self, raw: float) -> float:
        # tanh has no overflow where exp has one; both are the same function.
        return 0.5 + 0.5 * math.tanh((raw / 2 - self.center / 2) / self.scale)


Scale = QuantileScale | LogisticScale
_FILE: TypeAdapter[Scale] = TypeAdapter(Annotated[Scale, Field(discriminator="kind")])


def load_scale(path: str | PathLike[str]) -> Scale:
    """Return the scale of a JSON file. Raises SettingsError: not a file of one of the two kinds."""
    try:
        return _FILE.validate_json(Path(path).read_bytes())
    except OSError as error:
        reason = error.strerror
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = f"{where}: {first['msg']}" if where else first["msg"]
    raise SettingsError(
        f"REWARD_SCALE: {path} cannot be used ({reason}); "
        "make one with .venv/bin/python utils/reward_scale.py"
    )
