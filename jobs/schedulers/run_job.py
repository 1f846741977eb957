"""Runs a job, and again where that may help, for schedulers that do not look at exit statuses.

``run_job.py ingest --config orders.toml``: status 3 is tried again, three times, five minutes
apart; any other one ends the run at once. The attempts share the process, and so a cluster's Spark.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

JOBS = ("ingest", "export", "verify", "retention", "compact")
RETRIED = 3
"""Statuses 130 and 143 are those of signals, which end this process as well."""
ATTEMPTS = 4
SECONDS_BETWEEN = 300.0


def main(arguments: list[str], wait: Callable[[float], None] = time.sleep) -> int:
    """Return the exit status of the last attempt."""
    if not arguments or arguments[0] not in JOBS:
        sys.stderr.write(f"run_job.py: name a job first: {', '.join(JOBS)}\n")
        return 2
    name, *rest = arguments
    job = importlib.import_module(f"pylog_jobs.{name}").JOB
    status = int(job.main(rest))
    for _ in range(ATTEMPTS - 1):
        if status != RETRIED:
            break
        wait(SECONDS_BETWEEN)
        status = int(job.main(rest))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
