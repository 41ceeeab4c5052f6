"""Modules that every room uses. This file is imported before anything else of the project and
guards the path that modules are found on.

litellm's proxy, which agent-lightning imports, puts the folder two above the working directory
first on that path (1.83.14, `sys.path.insert(0, os.path.abspath("../.."))`): a file there named as
a module of ours or of a library would be run in its place, and anyone who may write into that
folder could put it there.
"""

import sys


class SearchPath(list[str]):
    """`sys.path` that ignores what litellm inserts."""

    def insert(self, index: int, item: str, /) -> None:  # type: ignore[override]  # list takes a SupportsIndex
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("litellm."):
            super().insert(index, item)


sys.path = SearchPath(sys.path)
