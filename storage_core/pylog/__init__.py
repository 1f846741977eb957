"""Apache Kafka's on-disk log without a broker.

The public names are loaded at first use, so that ``import pylog`` and the command line start
without NumPy, Numba and Arrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog.config import LogConfig as LogConfig
    from pylog.config import LogManagerConfig as LogManagerConfig
    from pylog.errors import LogStorageError as LogStorageError
    from pylog.inspect.read_table import read_table as read_table
    from pylog.log.log_manager import LogManager as LogManager
    from pylog.log.unified_log import UnifiedLog as UnifiedLog
    from pylog.model import CompressionType as CompressionType
    from pylog.model import IsolationLevel as IsolationLevel
    from pylog.model import TopicPartition as TopicPartition
    from pylog.positions import Timestamp as Timestamp
    from pylog.reading.log_directory import LogDirectory as LogDirectory
    from pylog.reading.log_directory import open_directory as open_directory
    from pylog.reading.log_view import LogView as LogView
    from pylog.reading.record_filter import RecordFilter as RecordFilter
    from pylog.reading.scan import Scan as Scan
    from pylog.reading.scan import scan as scan
    from pylog.record.record_batch_builder import RecordBatchBuilder as RecordBatchBuilder
    from pylog.writing.write_summary import WriteSummary as WriteSummary
    from pylog.writing.write_topic import write_topic as write_topic

__version__ = "0.1.0"

_HOMES = {
    "CompressionType": "pylog.model",
    "IsolationLevel": "pylog.model",
    "LogConfig": "pylog.config",
    "LogDirectory": "pylog.reading.log_directory",
    "LogManager": "pylog.log.log_manager",
    "LogManagerConfig": "pylog.config",
    "LogStorageError": "pylog.errors",
    "LogView": "pylog.reading.log_view",
    "RecordBatchBuilder": "pylog.record.record_batch_builder",
    "RecordFilter": "pylog.reading.record_filter",
    "Scan": "pylog.reading.scan",
    "Timestamp": "pylog.positions",
    "TopicPartition": "pylog.model",
    "UnifiedLog": "pylog.log.unified_log",
    "WriteSummary": "pylog.writing.write_summary",
    "open_directory": "pylog.reading.log_directory",
    "read_table": "pylog.inspect.read_table",
    "scan": "pylog.reading.scan",
    "write_topic": "pylog.writing.write_topic",
}

__all__ = [
    "CompressionType",
    "IsolationLevel",
    "LogConfig",
    "LogDirectory",
    "LogManager",
    "LogManagerConfig",
    "LogStorageError",
    "LogView",
    "RecordBatchBuilder",
    "RecordFilter",
    "Scan",
    "Timestamp",
    "TopicPartition",
    "UnifiedLog",
    "WriteSummary",
    "__version__",
    "open_directory",
    "read_table",
    "scan",
    "write_topic",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module 'pylog' has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
