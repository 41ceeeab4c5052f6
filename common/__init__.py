"""What every room uses. Imported before anything else of the project, it guards the path that
modules are found on.

litellm's proxy, which agent-lightning imports, puts the folder two above the working directory
first on that path (1.83.14, `sys.path.insert(0, os.path.abspath("../.."))`): a file there named as
a module of ours or of a library would be run in its place, by whoever may write into that folder.
"""

import sys


class SearchPath(list[str]):
    """`sys.path`, at whose front litellm puts nothing."""

    def insert(self, index: int, item: str, /) -> None:  # type: ignore[override]  # list takes a SupportsIndex
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("litellm."):
            super().insert(index, item)


sys.path = SearchPath(sys.path)
