"""A program's values as JSON, rebuilt in an interpreter that runs no line of that program.

The program controls what is written, so the JSON names neither a class to import nor code.
"""

import base64
import collections
import datetime
import decimal
import io
import json
import re
import types
import zlib
from collections.abc import Callable, Collection, ItemsView, KeysView, Mapping, ValuesView
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

MOST = 2**26  # characters of all values together
# Names of pandas' dtypes that are made again from their values
COLUMNS = re.compile(
    r"str|string|boolean|U?Int(8|16|32|64)|Float(32|64)|(datetime64|period|interval)\[.*\]"
)
PLAIN = (list, tuple, set, frozenset)
NO_VALUES = (
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    type,
)


def keep(
    held: Mapping[str, Any], names: Collection[str], reads: Collection[str], file: str
) -> None:
    """Write the values of the names to a file, of other objects the attributes in `reads`."""
    kept = {}
    for name in names:
        with suppress(Exception):  # a value that cannot be written is missing when it is looked for
            kept[name] = json.dumps(described(held[name], reads))
    with open(file, "wb") as out:
        out.write(zlib.compress(json.dumps(kept).encode()))


def load(text: str, names: Collection[str]) -> dict[str, Any]:
    """Return the values that can be rebuilt. Raises ValueError: `keep` did not write the text."""
    unpacked = zlib.decompressobj()
    whole = unpacked.decompress(base64.b64decode(text, validate=True), MOST)
    if unpacked.unconsumed_tail:
        raise ValueError(f"the values have more than {MOST:,} characters")
    kept = json.loads(whole)
    made = {}
    for name in names:
        with suppress(Exception):
            made[name] = restored(json.loads(kept[name]))
    return made


def described(value: Any, reads: Collection[str] = ()) -> Any:
    """Return a value as JSON: itself, or a list of its kind and what it is made of, described alike.

    Raises TypeError: other types.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic):
        return ["scalar", _npy(np.asarray(value))]
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, dict):
        return ["dict", described([*value], reads), described([*value.values()], reads)]
    if isinstance(value, PLAIN):
        parts = [described(part, reads) for part in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return ["named", described([*value._fields]), *parts]
        return [next(kind.__name__ for kind in PLAIN if isinstance(value, kind)), *parts]
    if isinstance(value, collections.deque | KeysView | ValuesView | ItemsView):
        return described([*value], reads)
    if isinstance(value, NO_VALUES):
        raise TypeError(f"{type(value).__name__} is no value")
    if found := _of_numpy_or_pandas(value) or _moment(value):
        return found
    attributes = {}
    for name in reads:
        with suppress(Exception):
            attributes[name] = described(getattr(value, name), reads)
    return ["record", described([*attributes]), ["list", *attributes.values()]]


def _of_numpy_or_pandas(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return ["objects", described(value.shape), described([*value.ravel()])]
        return ["array", _npy(value)]
    if isinstance(value, pd.DataFrame):
        columns = [_column(value.iloc[:, at]) for at in range(value.shape[1])]
        return ["frame", described(value.columns), described(value.index), *columns]
    if isinstance(value, pd.Series):
        return ["series", _column(value), described(value.index), described(value.name)]
    if isinstance(value, pd.MultiIndex):
        return ["levels", described([*value]), described([*value.names])]
    if isinstance(value, pd.Index):
        return ["index", _column(value), described(value.name)]
    if isinstance(value, pd.api.extensions.ExtensionArray):
        return _column(pd.Series(value))
    return None


def _column(values: pd.Series | pd.Index) -> Any:
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        return described(values.to_numpy())
    if isinstance(dtype, pd.CategoricalDtype):
        codes = described(pd.Categorical(values).codes)
        return ["category", codes, _column(dtype.categories), bool(dtype.ordered)]
    return ["items", str(dtype), described([*values])]


def _moment(value: Any) -> Any:
    if value is pd.NaT or value is pd.NA:
        return ["missing", str(value)]
    if isinstance(value, pd.Period):
        return ["Period", str(value), value.freqstr]
    if isinstance(value, pd.Interval):
        return ["Interval", described(value.left), described(value.right), value.closed]
    if isinstance(value, pd.Timedelta | datetime.datetime | datetime.date | datetime.time):
        return [type(value).__name__, value.isoformat()]
    if isinstance(value, datetime.timedelta):
        return ["timedelta", value.days, value.seconds, value.microseconds]
    if isinstance(value, range):
        return ["range", value.start, value.stop, value.step]
    if isinstance(value, decimal.Decimal | complex):
        return [type(value).__name__, str(value)]
    return None


def _npy(array: Any) -> str:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return base64.b64encode(file.getvalue()).decode()


def restored(document: Any) -> Any:
    """Return the value that `described` encoded. Raises an exception for any other document."""
    if isinstance(document, list):
        kind, *parts = document
        return MAKERS[kind](*map(restored, parts))
    if isinstance(document, dict):
        raise TypeError("an object of JSON where a value is expected")
    return document


def _array(text: str) -> Any:
    file = io.BytesIO(base64.b64decode(text, validate=True))
    return np.lib.format.read_array(file, allow_pickle=False)


def _objects(shape: tuple[int, ...], values: list[Any]) -> Any:
    array: Any = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        array[at] = value
    return array.reshape(shape)


def _items(dtype: str, values: list[Any]) -> Any:
    if not COLUMNS.fullmatch(dtype):
        raise TypeError(f"no column of {dtype!r}")
    return pd.Series(values, dtype=dtype).array


def _category(codes: Any, categories: Any, ordered: bool) -> Any:
    return pd.Categorical.from_codes(codes, pd.Index(categories), ordered=ordered)


def _frame(columns: Any, index: Any, *data: Any) -> Any:
    made = pd.DataFrame(dict(enumerate(data)), index=index)
    made.columns = columns
    return made


def _named(fields: list[str], *parts: Any) -> Any:
    return collections.namedtuple("Named", fields, rename=True)(*parts)


def _record(names: list[str], parts: list[Any]) -> Any:
    found = zip(names, parts, strict=True)
    return types.SimpleNamespace(**{name: part for name, part in found if not name.startswith("_")})


MAKERS: dict[str, Callable[..., Any]] = {
    "list": lambda *parts: list(parts),
    "tuple": lambda *parts: parts,
    "set": lambda *parts: set(parts),
    "frozenset": lambda *parts: frozenset(parts),
    "dict": lambda keys, parts: dict(zip(keys, parts, strict=True)),
    "named": _named,
    "record": _record,
    "array": _array,
    "scalar": lambda text: _array(text)[()],
    "objects": _objects,
    "items": _items,
    "category": _category,
    "frame": _frame,
    "series": lambda column, index, name: pd.Series(column, index=index, name=name),
    "index": lambda column, name: pd.Index(column, name=name),
    "levels": lambda rows, names: pd.MultiIndex.from_tuples(rows, names=names),
    "missing": {"NaT": pd.NaT, "<NA>": pd.NA}.__getitem__,
    "Timestamp": pd.Timestamp,
    "Timedelta": pd.Timedelta,
    "Period": pd.Period,
    "Interval": pd.Interval,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": datetime.timedelta,
    "Decimal": decimal.Decimal,
    "complex": complex,
    "range": range,
}
