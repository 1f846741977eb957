"""The data source ``pylog`` under another name, whose processes are killed while they write.

Format ``pylog_killed`` takes the options of ``pylog``, and those that say who dies, and when:

=============== ===================================================================================
``killed.in``   ``write``: a task, or ``commit``: the process that commits
``killed.at``   before which change of the disk, counted from 1; where there are fewer, nobody dies
``killed.once`` a file that is made when somebody dies, and keeps others from dying
``killed.jvm``  ``true``: Spark's JVM dies, too, as when a driver is killed
=============== ===================================================================================
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from pyspark.sql.datasource import CaseInsensitiveDict

from pylog.files.durable_io import DurableIO
from pyspark_pylog.batch_writer import PylogBatchWriter
from pyspark_pylog.data_source import PylogDataSource
from pyspark_pylog.write_options import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

    from pyspark_pylog.staged_task import StagedTask

_PREFIX = "killed."
_CHANGES = ("pwrite", "ftruncate", "fsync", "rename", "unlink", "mkdir", "fsync_directory")


class KillingSource(PylogDataSource):
    """Format ``pylog_killed``."""

    def __init__(self, options: Mapping[str, str]) -> None:
        rest = {name: text for name, text in options.items() if not name.startswith(_PREFIX)}
        super().__init__(CaseInsensitiveDict(rest))
        self._killing = {name: text for name, text in options.items() if name not in rest}
        self._rest = rest

    @classmethod
    def name(cls) -> str:
        return "pylog_killed"

    def writer(self, schema: StructType, overwrite: bool) -> KillingWriter:  # noqa: FBT001 - Spark's signature
        return KillingWriter(WriteOptions.parse(self._rest), schema, self._killing)


class KillingWriter(PylogBatchWriter):
    """Kills the process that it runs in."""

    def __init__(
        self, options: WriteOptions, schema: StructType, killing: Mapping[str, str]
    ) -> None:
        super().__init__(options, schema)
        self._victim = killing["killed.in"]
        self._at = int(killing["killed.at"])
        self._once = killing["killed.once"]
        self._kills_jvm = killing.get("killed.jvm") == "true"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedTask:
        with self._killed("write"):
            return super().write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        with self._killed("commit"):
            super().commit(messages)

    @contextmanager
    def _killed(self, victim: str) -> Iterator[None]:
        if victim != self._victim or Path(self._once).exists():
            yield
            return
        originals = {name: getattr(DurableIO, name) for name in _CHANGES}
        left = self._at

        def counted(name: str) -> Any:  # noqa: ANN401 - any of the methods
            def change(*arguments: object, **named: object) -> object:
                nonlocal left
                left -= 1
                if left == 0:
                    self._die()
                return originals[name](*arguments, **named)

            return change

        for name in _CHANGES:
            setattr(DurableIO, name, counted(name))
        try:
            yield
        finally:  # the process serves others
            for name, original in originals.items():
                setattr(DurableIO, name, original)

    def _die(self) -> None:
        Path(self._once).touch()
        if self._kills_jvm:
            ancestors = psutil.Process().parents()
            next(each for each in ancestors if "java" in each.name()).kill()
        os.kill(os.getpid(), signal.SIGKILL)
