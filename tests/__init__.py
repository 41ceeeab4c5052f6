"""Helpers are imported as `tests.room.module`: some libraries install a `tests`, too."""
