"""Wrong use of a command ends it with 2 and one line that names what is wrong; nothing is written."""

import importlib
from pathlib import Path

import pytest

from common.settings import load_settings
from tests.corpora import cases_of
from tests.messages import missing


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "flags", "named", "files"), cases_of(__file__, "wrong_use"))
def test_wrong_use_is_one_line(command, flags, named, files, tmp_path, monkeypatch, capsys):
    """In a case {} is a folder, which holds these files."""
    monkeypatch.delenv("AGL_TOKEN", raising=False)
    load_settings.cache_clear()
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content.encode("latin-1"))
    before = contents(tmp_path)
    main = importlib.import_module(command).main
    try:
        code = main([flag.replace("{}", str(tmp_path)) for flag in flags])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    said = capsys.readouterr().err
    assert not missing(said, *(value.replace("{}", str(tmp_path)) for value in named))
    assert said.count("\n") == 1
    assert "canary" not in said
    assert contents(tmp_path) == before
