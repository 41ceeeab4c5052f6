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
    r"object|str|string|boolean|U?Int(8|16|32|64)|Float(32|64)|(datetime64|period|interval)\[.*\]"
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
    """Return a value as JSON: itself, or a list of kind and parts. Raises TypeError: other types."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic):
        return ["scalar", _npy(np.asarray(value))]
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, dict):
        pairs = [[described(key, reads), described(part, reads)] for key, part in value.items()]
        return ["dict", pairs]
    if isinstance(value, PLAIN):
        parts = [described(part, reads) for part in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return ["named", list(value._fields), parts]
        return [next(kind.__name__ for kind in PLAIN if isinstance(value, kind)), parts]
    if isinstance(value, collections.deque | KeysView | ValuesView | ItemsView):
        return ["list", [described(part, reads) for part in value]]
    if isinstance(value, NO_VALUES):
        raise TypeError(f"{type(value).__name__} is no value")
    if found := _of_numpy_or_pandas(value) or _moment(value):
        return found
    attributes = {}
    for name in reads:
        with suppress(Exception):
            attributes[name] = described(getattr(value, name), reads)
    return ["record", attributes]


def _of_numpy_or_pandas(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return ["objects", list(value.shape), [described(part) for part in value.ravel()]]
        return ["array", _npy(value)]
    if isinstance(value, pd.DataFrame):
        columns = [_column(value.iloc[:, at]) for at in range(value.shape[1])]
        return ["frame", _index(value.columns), _index(value.index), columns]
    if isinstance(value, pd.Series):
        return ["series", _column(value), _index(value.index), described(value.name)]
    if isinstance(value, pd.Index):
        return ["index", _index(value)]
    if isinstance(value, pd.api.extensions.ExtensionArray):
        return ["column", _column(pd.Series(value))]
    return None


def _column(values: pd.Series | pd.Index) -> Any:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        whole = pd.Categorical(values)
        return ["category", _npy(whole.codes), _column(dtype.categories), bool(dtype.ordered)]
    if isinstance(dtype, np.dtype) and not dtype.hasobject:
        return ["npy", _npy(values.to_numpy())]
    return ["items", str(dtype), [described(part) for part in values]]


def _index(index: pd.Index) -> Any:
    if isinstance(index, pd.MultiIndex):
        rows = [[described(part) for part in row] for row in index]
        return ["levels", rows, [described(name) for name in index.names]]
    return ["labels", _column(index), described(index.name)]


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
    if isinstance(value, decimal.Decimal | complex | range):
        return [type(value).__name__, repr(value) if isinstance(value, complex) else str(value)]
    return None


def _npy(array: Any) -> str:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return base64.b64encode(file.getvalue()).decode()


def restored(document: Any) -> Any:
    """Return the value that `described` encoded. Raises an exception for any other document."""
    if not isinstance(document, list):
        if isinstance(document, dict):
            raise TypeError("an object of JSON where a value is expected")
        return document
    kind, *parts = document
    return MAKERS[kind](*parts)


def _array(text: str) -> Any:
    file = io.BytesIO(base64.b64decode(text, validate=True))
    return np.lib.format.read_array(file, allow_pickle=False)


def _restored_column(document: list[Any]) -> Any:
    kind, *parts = document
    if kind == "npy":
        return _array(parts[0])
    if kind == "category":
        codes, categories, ordered = parts
        known = pd.Index(_restored_column(categories))
        return pd.Categorical.from_codes(_array(codes), known, ordered=ordered)
    dtype, items = parts
    if kind != "items" or not COLUMNS.fullmatch(dtype):
        raise TypeError(f"no column of {kind!r}, {dtype!r}")
    values = [restored(item) for item in items]
    return pd.Series(values, dtype=dtype).array if dtype != "object" else _objects(values)


def _objects(values: list[Any]) -> Any:
    array: Any = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        array[at] = value
    return array


def _restored_index(document: list[Any]) -> Any:
    kind, *parts = document
    if kind == "levels":
        rows, names = parts
        names = [restored(name) for name in names]
        made = [tuple(restored(part) for part in row) for row in rows]
        return pd.MultiIndex.from_tuples(made, names=names)
    column, name = parts
    return pd.Index(_restored_column(column), name=restored(name))


def _frame(columns: Any, index: Any, data: list[Any]) -> Any:
    rows = _restored_index(index)
    made = pd.DataFrame(dict(enumerate(map(_restored_column, data))), index=rows)
    made.columns = _restored_index(columns)
    return made


def _series(column: Any, index: Any, name: Any) -> Any:
    return pd.Series(_restored_column(column), index=_restored_index(index), name=restored(name))


def _named(fields: list[str], parts: list[Any]) -> Any:
    return collections.namedtuple("Named", fields, rename=True)(*map(restored, parts))


def _namespace(found: dict[str, Any]) -> Any:
    made = {name: restored(part) for name, part in found.items() if not name.startswith("_")}
    return types.SimpleNamespace(**made)


MAKERS: dict[str, Callable[..., Any]] = {
    "list": lambda parts: [restored(part) for part in parts],
    "tuple": lambda parts: tuple(restored(part) for part in parts),
    "set": lambda parts: {restored(part) for part in parts},
    "frozenset": lambda parts: frozenset(restored(part) for part in parts),
    "dict": lambda pairs: {restored(key): restored(part) for key, part in pairs},
    "named": _named,
    "record": _namespace,
    "array": _array,
    "scalar": lambda text: _array(text)[()],
    "objects": lambda shape, parts: _objects([restored(part) for part in parts]).reshape(shape),
    "frame": _frame,
    "series": _series,
    "index": _restored_index,
    "column": _restored_column,
    "missing": {"NaT": pd.NaT, "<NA>": pd.NA}.__getitem__,
    "Timestamp": pd.Timestamp,
    "Timedelta": pd.Timedelta,
    "Period": pd.Period,
    "Interval": lambda left, right, closed: pd.Interval(restored(left), restored(right), closed),
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": datetime.timedelta,
    "Decimal": decimal.Decimal,
    "complex": complex,
    "range": lambda text: range(*map(int, re.findall(r"-?\d+", text))),
}
