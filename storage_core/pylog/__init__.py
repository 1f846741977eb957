"""Apache Kafka's on-disk log without a broker.

The public names are loaded at first use, so that ``import pylog`` and the command line start
without NumPy, Numba and Arrow.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylog.config import LogConfig as LogConfig
    from pylog.config import LogManagerConfig as LogManagerConfig
    from pylog.errors import LogStorageError as LogStorageError
    from pylog.files.partition_metadata import format_uuid as format_uuid
    from pylog.files.partition_metadata import parse_uuid as parse_uuid
    from pylog.inspect.partition_listing import ListedPartition as ListedPartition
    from pylog.inspect.partition_listing import PartitionListing as PartitionListing
    from pylog.inspect.partition_listing import list_partitions as list_partitions
    from pylog.inspect.read_table import read_table as read_table
    from pylog.log.log_context import LogContext as LogContext
    from pylog.log.log_manager import LogManager as LogManager
    from pylog.log.unified_log import UnifiedLog as UnifiedLog
    from pylog.model import CompressionType as CompressionType
    from pylog.model import IsolationLevel as IsolationLevel
    from pylog.model import TopicPartition as TopicPartition
    from pylog.reading.damage import ReadMode as ReadMode
    from pylog.reading.log_directory import LogDirectory as LogDirectory
    from pylog.reading.log_directory import open_directory as open_directory
    from pylog.reading.log_view import LogView as LogView
    from pylog.reading.offset_spec import Timestamp as Timestamp
    from pylog.reading.partition_choice import choose_partitions as choose_partitions
    from pylog.reading.planned_bytes import PlannedBytes as PlannedBytes
    from pylog.reading.record_filter import RecordFilter as RecordFilter
    from pylog.reading.removal_preview import Removal as Removal
    from pylog.reading.scan import Scan as Scan
    from pylog.reading.scan import scan as scan
    from pylog.record.decompression_limit import (
        DEFAULT_MAX_DECOMPRESSED_BYTES as DEFAULT_MAX_DECOMPRESSED_BYTES,
    )
    from pylog.record.record_batch_builder import RecordBatchBuilder as RecordBatchBuilder
    from pylog.writing.line_appender import LineAppender as LineAppender
    from pylog.writing.moved_offset import MovedOffset as MovedOffset
    from pylog.writing.owned_directory import own_log_directory as own_log_directory
    from pylog.writing.record_removal import delete_records as delete_records
    from pylog.writing.record_removal import truncate_log as truncate_log
    from pylog.writing.removal_plan import plan_record_deletion as plan_record_deletion
    from pylog.writing.removal_plan import plan_truncation as plan_truncation
    from pylog.writing.topic_creation import create_topic as create_topic
    from pylog.writing.write_summary import PartitionSummary as PartitionSummary
    from pylog.writing.write_summary import WriteSummary as WriteSummary
    from pylog.writing.write_topic import write_topic as write_topic

__version__ = "0.1.0"

# Whoever uses the library decides what becomes of its warnings, by setting logging up or not.
logging.getLogger(__name__).addHandler(logging.NullHandler())

_HOMES = {
    "DEFAULT_MAX_DECOMPRESSED_BYTES": "pylog.record.decompression_limit",
    "CompressionType": "pylog.model",
    "IsolationLevel": "pylog.model",
    "LineAppender": "pylog.writing.line_appender",
    "ListedPartition": "pylog.inspect.partition_listing",
    "LogConfig": "pylog.config",
    "LogContext": "pylog.log.log_context",
    "LogDirectory": "pylog.reading.log_directory",
    "LogManager": "pylog.log.log_manager",
    "LogManagerConfig": "pylog.config",
    "LogStorageError": "pylog.errors",
    "LogView": "pylog.reading.log_view",
    "MovedOffset": "pylog.writing.moved_offset",
    "PartitionListing": "pylog.inspect.partition_listing",
    "PartitionSummary": "pylog.writing.write_summary",
    "PlannedBytes": "pylog.reading.planned_bytes",
    "ReadMode": "pylog.reading.damage",
    "RecordBatchBuilder": "pylog.record.record_batch_builder",
    "RecordFilter": "pylog.reading.record_filter",
    "Removal": "pylog.reading.removal_preview",
    "Scan": "pylog.reading.scan",
    "Timestamp": "pylog.reading.offset_spec",
    "TopicPartition": "pylog.model",
    "UnifiedLog": "pylog.log.unified_log",
    "WriteSummary": "pylog.writing.write_summary",
    "choose_partitions": "pylog.reading.partition_choice",
    "create_topic": "pylog.writing.topic_creation",
    "delete_records": "pylog.writing.record_removal",
    "format_uuid": "pylog.files.partition_metadata",
    "list_partitions": "pylog.inspect.partition_listing",
    "open_directory": "pylog.reading.log_directory",
    "own_log_directory": "pylog.writing.owned_directory",
    "parse_uuid": "pylog.files.partition_metadata",
    "plan_record_deletion": "pylog.writing.removal_plan",
    "plan_truncation": "pylog.writing.removal_plan",
    "read_table": "pylog.inspect.read_table",
    "scan": "pylog.reading.scan",
    "truncate_log": "pylog.writing.record_removal",
    "write_topic": "pylog.writing.write_topic",
}

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "CompressionType",
    "IsolationLevel",
    "LineAppender",
    "ListedPartition",
    "LogConfig",
    "LogContext",
    "LogDirectory",
    "LogManager",
    "LogManagerConfig",
    "LogStorageError",
    "LogView",
    "MovedOffset",
    "PartitionListing",
    "PartitionSummary",
    "PlannedBytes",
    "ReadMode",
    "RecordBatchBuilder",
    "RecordFilter",
    "Removal",
    "Scan",
    "Timestamp",
    "TopicPartition",
    "UnifiedLog",
    "WriteSummary",
    "__version__",
    "choose_partitions",
    "create_topic",
    "delete_records",
    "format_uuid",
    "list_partitions",
    "open_directory",
    "own_log_directory",
    "parse_uuid",
    "plan_record_deletion",
    "plan_truncation",
    "read_table",
    "scan",
    "truncate_log",
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
