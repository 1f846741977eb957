"""Apache Kafka's on-disk log without a broker.

The public names are loaded at first use, so that ``import pylog`` and the command line start
without NumPy, Numba and Arrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pylog.scan  # noqa: F401 - see below

# Loading the package of that name has just put it here. It stays importable as a package, and the
# attribute becomes free for the function (through __getattr__): ``pylog.scan(path)``.
del globals()["scan"]

if TYPE_CHECKING:
    from pylog.errors import LogStorageError as LogStorageError
    from pylog.inspect.read_table import read_table as read_table
    from pylog.model import IsolationLevel as IsolationLevel
    from pylog.model import TopicPartition as TopicPartition
    from pylog.scan.log_directory import LogDirectory as LogDirectory
    from pylog.scan.log_directory import open_directory as open_directory
    from pylog.scan.log_view import LogView as LogView
    from pylog.scan.offset_spec import Timestamp as Timestamp
    from pylog.scan.record_filter import RecordFilter as RecordFilter
    from pylog.scan.scan import Scan as Scan
    from pylog.scan.scan import scan as scan

__version__ = "0.1.0"

_HOMES = {
    "IsolationLevel": "pylog.model",
    "LogDirectory": "pylog.scan.log_directory",
    "LogStorageError": "pylog.errors",
    "LogView": "pylog.scan.log_view",
    "RecordFilter": "pylog.scan.record_filter",
    "Scan": "pylog.scan.scan",
    "Timestamp": "pylog.scan.offset_spec",
    "TopicPartition": "pylog.model",
    "open_directory": "pylog.scan.log_directory",
    "read_table": "pylog.inspect.read_table",
    "scan": "pylog.scan.scan",
}

__all__ = [
    "IsolationLevel",
    "LogDirectory",
    "LogStorageError",
    "LogView",
    "RecordFilter",
    "Scan",
    "Timestamp",
    "TopicPartition",
    "__version__",
    "open_directory",
    "read_table",
    "scan",
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
