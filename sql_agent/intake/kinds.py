"""Tells from the first bytes of a file whether it is of the kind that its name says."""

import re
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from data.json_rows import LINES

ZIP = b"PK\x03\x04"
OLE = b"\xd0\xcf\x11\xe0"
PARQUET = b"PAR1"
STARTS = {
    ZIP: "a workbook or another zip file; name a workbook .xlsx, unpack another",
    OLE: (
        "an older workbook (name it .xls) or one with a password (save it without); "
        "open it in a spreadsheet program to see which"
    ),
    PARQUET: "Parquet; name it .parquet",
    b"SQLite format 3": "an SQLite database; give it as sqlite:///FILE",
    b"\x1f\x8b": "packed by gzip; unpack it",
    b"%PDF": "a PDF; copy its table into a spreadsheet program and save it as .xlsx",
    b"<?xml": "XML; open it in a spreadsheet program and save it as .xlsx",
}
OF_KIND = {".xlsx": ZIP, ".xlsm": ZIP, ".xlsb": ZIP, ".ods": ZIP, ".xls": OLE, ".parquet": PARQUET}
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # as the "Unicode text" of a spreadsheet begins
HTML = re.compile(rb"<(?:!doctype|html|head|meta|body|table|div|style)\b", re.IGNORECASE)
OBJECT = re.compile(rb"""(?:\[\s*)?\{\s*["']""")  # how JSON begins, alone or in a list


def other_kind(path: Path) -> str:
    """Return what a file is that is not of its name's kind, and what to do, or ""."""
    kind = path.suffix.lower()
    with path.open("rb") as file:
        start = file.read(512)
    if kind in OF_KIND and start.startswith(OF_KIND[kind]):
        return _other_zip(path) if OF_KIND[kind] == ZIP else ""
    if seen := binary_kind(start):
        return seen
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if HTML.match(text):
        return "a page of HTML; open it in a spreadsheet program and save it as .xlsx"
    if OBJECT.match(text) and kind not in (".json", *LINES):
        return "JSON; name a list .json, and an object a line .jsonl"
    if kind in OF_KIND and (b"\0" not in start or start.startswith(UTF_16)):
        return "text; if it is a table with commas or tabs, name it .csv" if text else "empty"
    return ""


def _other_zip(path: Path) -> str:
    try:
        with ZipFile(path) as package:
            names = package.namelist()
    except (BadZipFile, NotImplementedError, UnicodeError):
        return "damaged or cut off; copy or export it again"
    if "content.xml" in names or any(name.startswith("xl/") for name in names):
        return ""
    return f"a zip file of {', '.join(names[:3])} and not a workbook; unpack it"


def binary_kind(start: bytes) -> str:
    """Return what a file other than text is by its first bytes, and what to do, or ""."""
    return next((seen for mark, seen in STARTS.items() if start.startswith(mark)), "")
