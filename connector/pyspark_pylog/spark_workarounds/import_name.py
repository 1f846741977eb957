"""Whether ``import pylog`` gives our package, or another one of the same name.

A file ``pylog.py`` beside a script, or another distribution that installs a module of that name,
hides or replaces `pylog`. Whatever would fail then in its own way says this instead.
"""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql.datasource import DataSource

import pylog

IS_OURS = "read_table" in getattr(pylog, "__all__", ())
"""Whether the imported package is ours; asked of a name that is not loaded for that."""

EXPLANATION = (
    f"'import pylog' gives {getattr(pylog, '__file__', None)}, which is not of pyspark-pylog: "
    "another distribution, or a file beside your script, has the same import name. Rename the "
    "file, or install pyspark-pylog into an environment of its own"
)


def refuse(name: str) -> NoReturn:
    """Say so, whatever ``name`` is asked for; a module's ``__getattr__``."""
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(EXPLANATION)


class ClashingSource(DataSource):
    """In the place of the data source: it can be found, and says why it cannot be used.

    An exception while Spark imports modules would turn off every other Python data source as well.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        raise ImportError(EXPLANATION)

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "pylog"
