"""Modules that every room uses. It is imported first, and guards the path that modules are found
on.

litellm's proxy puts the folder two above the working directory first on that path (1.83.14,
`sys.path.insert(0, os.path.abspath("../.."))`), where anyone may have put a file of a module's
name.
"""

import sys


class SearchPath(list[str]):
    """`sys.path` that ignores what litellm inserts."""

    def insert(self, index: int, item: str, /) -> None:  # type: ignore[override]  # list takes a SupportsIndex
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("litellm."):
            super().insert(index, item)


sys.path = SearchPath(sys.path)
