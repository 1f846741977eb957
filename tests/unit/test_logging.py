"""Whose decision it is what becomes of the library's warnings."""

from __future__ import annotations

import subprocess
import sys

IMPORT_LET = "from pyspark_pylog.spark_workarounds.worker_process import prepare_worker as let"
WARN = "logging.getLogger('pylog.reading.damage').warning('bytes are left out')"


def stderr_of(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stderr


def test_the_library_writes_nothing_of_its_own_accord() -> None:
    assert stderr_of(f"import logging, pylog; {WARN}") == ""


def test_whoever_sets_logging_up_sees_the_warnings() -> None:
    code = f"import logging, pylog; logging.basicConfig(format='%(message)s'); {WARN}"
    assert stderr_of(code) == "bytes are left out\n"


def test_a_worker_of_spark_writes_warnings_once_though_nobody_sets_logging_up() -> None:
    let = f"{IMPORT_LET}; let(); let()"
    assert stderr_of(f"import logging, pylog; {let}; {WARN}") == "bytes are left out\n"


def test_a_worker_of_spark_leaves_logging_alone_that_is_set_up() -> None:
    let = f"{IMPORT_LET}; let()"
    basic = "logging.basicConfig(format='once: %(message)s')"
    assert stderr_of(f"import logging, pylog; {basic}; {let}; {WARN}") == (
        "once: bytes are left out\n"
    )
