"""The first of several who keep a text under one key decides."""

from __future__ import annotations

from pathlib import Path

from common.text_store import TextStore


def test_what_is_kept_stays_whoever_comes_later(tmp_path: Path) -> None:
    first, second = (
        TextStore(tmp_path / "s.sqlite", lambda error: RuntimeError(str(error))) for _ in range(2)
    )
    assert first.keep("key", "") == ""
    assert second.keep("key", "later") == ""
    assert first.get("key") == ""
