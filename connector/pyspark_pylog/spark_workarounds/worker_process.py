"""What a Python worker of Spark needs: its warnings written, and little garbage collection.

Spark keeps its workers from task to task, those that plan as well as those that read, and their
daemon runs ``gc.collect()`` after each task. That walks every object of every loaded module: 30 ms
with Arrow, where our own part of a task over a small partition takes less than one. Modules never
become garbage, so they are taken out of the walk, once.
"""

from __future__ import annotations

import gc
import logging
import sys
from typing import NoReturn

from pyspark.sql.datasource import DataSource

import pylog

_DAEMON = "pyspark.daemon"
_EXEMPT_AT = 2
_begun: list[bool] = []
"""An entry for each of the first `_EXEMPT_AT` tasks of this process. Asking the collector how many
objects it passes over would walk all of them: 17 ms, in each task."""


def prepare_worker() -> None:
    """Make this process ready for a task; call it first wherever Spark calls."""
    _let_warnings_through()
    _exempt_modules_from_collection()


def _let_warnings_through() -> None:
    """Have pylog's warnings written to the worker's stderr, which Spark keeps in its logs."""
    if not logging.getLogger().handlers and logging.lastResort is not None:
        logging.getLogger("pylog").addHandler(logging.lastResort)


def _exempt_modules_from_collection() -> None:
    """Let the collector pass over what is alive now; once a process, and only in Spark's workers.

    At the beginning of the second task: all modules and kernels are loaded then, and the daemon has
    just collected the garbage of the first, so that none is kept and nobody waits for a collection.
    """
    if len(_begun) == _EXEMPT_AT or not is_reused_worker():
        return
    _begun.append(True)
    if len(_begun) == _EXEMPT_AT:
        gc.freeze()


def is_reused_worker() -> bool:
    """Whether this process was forked by Spark's daemon, which collects after every task."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return spec is not None and spec.name == _DAEMON


# Whether ``import pylog`` gives our package, or another one of the same name.
#
# A file ``pylog.py`` beside a script, or another distribution that installs a module of that name,
# hides or replaces `pylog`. Whatever would fail then in its own way says this instead.


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
