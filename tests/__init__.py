"""Helpers are imported as `tests.room.module`; a package, because some libraries install one of the
same name.
"""
