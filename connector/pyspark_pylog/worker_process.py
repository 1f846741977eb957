"""What a Python worker of Spark needs: its warnings written, and little garbage collection.

Spark keeps its workers from task to task, and its daemon runs ``gc.collect()`` after each one. That
walks every object of every loaded module: 30 ms with Arrow and Numba, where a task over a small
partition takes 5. Modules never become garbage, so they are taken out of the walk, once.
"""

from __future__ import annotations

import gc
import logging
import sys

_DAEMON = "pyspark.daemon"
_exempted: list[bool] = []
"""Not empty once the modules of this process are exempt. Asking the collector how many objects it
passes over would walk all of them: 17 ms, in each task."""


def let_warnings_through() -> None:
    """Have pylog's warnings written to the worker's stderr, which Spark keeps in its logs.

    As any library, pylog leaves it to its user to configure logging. In a worker nobody does, and
    what `DROPMALFORMED` leaves out has to be seen. Nothing is done if logging is configured.
    """
    if not logging.getLogger().handlers and logging.lastResort is not None:
        logging.getLogger("pylog").addHandler(logging.lastResort)


def exempt_modules_from_collection() -> None:
    """Let the collector pass over what is alive now; once a process, and only in Spark's workers.

    Call it after the first task, when all modules and kernels are loaded. The garbage of that task
    is collected first, so that it is not kept.
    """
    if _exempted or not is_reused_worker():
        return
    _exempted.append(True)
    gc.collect()
    gc.freeze()


def is_reused_worker() -> bool:
    """Whether this process was forked by Spark's daemon, which collects after every task."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return spec is not None and spec.name == _DAEMON
