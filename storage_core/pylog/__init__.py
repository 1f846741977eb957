"""Apache Kafka's on-disk log without a broker.

The public names are those in ``pylog.__all__`` and in `pylog.errors`. Each is loaded at its first
use, so that ``import pylog`` and the command line start without NumPy, Numba and Arrow. Values that
a caller passes in never need those.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pylog.lazy_modules import LazyNames

__version__ = "0.1.0"

# The user of the library decides where its warnings go, by configuring logging or not.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# The one list of public names, by the module that each is defined in.
_PUBLIC = LazyNames(
    __name__,
    {
        "pylog.admin.consumer_groups": (
            "CommittedOffset",
            "ConsumerGroup",
            "GroupListing",
            "GroupMember",
            "groups",
        ),
        "pylog.admin.log_dirs": (
            "list_partitions",
            "ListedPartition",
            "PartitionListing",
        ),
        "pylog.admin.topics": (
            "DescribedPartition",
            "DescribedTopic",
            "TopicDescription",
            "topics",
        ),
        "pylog.admin.transactions": (
            "ListedTransaction",
            "TransactionListing",
            "transactions",
        ),
        "pylog.checks.doctor": ("doctor",),
        "pylog.checks.repair": ("repair_copy",),
        "pylog.checks.report": (
            "DoctorReport",
            "Finding",
            "LogDirectoryReport",
            "PartitionReport",
            "RepairedPartition",
            "RepairSummary",
            "Severity",
        ),
        "pylog.cleaner.cleaning_task": ("CleaningTask",),
        "pylog.cleaner.large_cleaning": (
            "GroupTask",
            "LargeCleaning",
            "LargeCleaningPlan",
        ),
        "pylog.cleaner.large_cleaning_tasks": (
            "RecordKeysTask",
            "SegmentTransactions",
            "SegmentTransactionsTask",
        ),
        "pylog.cleaner.log_cleaner": ("LogCleaner",),
        "pylog.cleaner.log_snapshot": (
            "CleanedGroup",
            "StagedCleaning",
        ),
        "pylog.columnar.arrow_schema": ("record_schema",),
        "pylog.config.broker_config": (
            "CleanerConfig",
            "LogManagerConfig",
            "RecoveryMode",
        ),
        "pylog.config.config_property": (
            "ConfigEntry",
            "ConfigSource",
        ),
        "pylog.config.log_config": ("LogConfig",),
        "pylog.config.server_properties": ("ServerProperties",),
        "pylog.duckdb": ("LogDatabase",),
        "pylog.dump_log.dump": (
            "dump",
            "Dump",
        ),
        "pylog.dump_log.report": ("FileReport",),
        "pylog.errors": ("LogStorageError",),
        "pylog.files.high_watermarks": ("HIGH_WATERMARKS",),
        "pylog.files.offset_json_file": ("read_offset_json_file",),
        "pylog.files.partition_metadata": (
            "format_uuid",
            "parse_uuid",
        ),
        "pylog.files.staged_files": ("StagedRecords",),
        "pylog.internal_topics.decoders": (
            "DECODER_NAMES",
            "DecoderName",
        ),
        "pylog.internal_topics.versions": ("KafkaVersion",),
        "pylog.kernel_compilation": ("compile_kernels",),
        "pylog.locations": (
            "absolute_location",
            "location",
        ),
        "pylog.log.log_context": ("LogContext",),
        "pylog.log.log_manager": ("LogManager",),
        "pylog.log.log_segment": (
            "FetchDataInfo",
            "FetchIsolation",
        ),
        "pylog.log.metrics": (
            "CleanerMetrics",
            "LogManagerMetrics",
            "LogMetrics",
        ),
        "pylog.log.retention": (
            "DeletedSegment",
            "RetentionReason",
        ),
        "pylog.log.unified_log": ("UnifiedLog",),
        "pylog.model": (
            "AbortedTransaction",
            "AppendOrigin",
            "CompressionType",
            "INTERNAL_TOPICS",
            "IsolationLevel",
            "NO_PARTITION_LEADER_EPOCH",
            "NO_PRODUCER_EPOCH",
            "NO_PRODUCER_ID",
            "NO_SEQUENCE",
            "NO_TIMESTAMP",
            "TimestampType",
            "TopicPartition",
        ),
        "pylog.native.kernel": ("KeptCode",),
        "pylog.positions": (
            "EARLIEST",
            "LATEST",
            "MAX_TIMESTAMP",
            "OffsetSpec",
            "OffsetSpecs",
            "Timestamp",
        ),
        "pylog.pushdown.comparison": (
            "Comparison",
            "to_record_filter",
        ),
        "pylog.reading.damage": (
            "DamagedRange",
            "DamageReport",
            "ReadMode",
        ),
        "pylog.reading.discovery": ("PartitionDirectory",),
        "pylog.reading.followed_directory": (
            "follow",
            "FollowedDirectory",
            "FollowedLog",
            "FollowedRecords",
        ),
        "pylog.reading.log_directory": (
            "choose_partitions",
            "LogDirectory",
            "open_directory",
        ),
        "pylog.reading.log_view": ("LogView",),
        "pylog.reading.record_filter": ("RecordFilter",),
        "pylog.reading.record_stream": ("ConsumerRecord",),
        "pylog.reading.removal_preview": ("Removal",),
        "pylog.reading.scan": (
            "Scan",
            "scan",
        ),
        "pylog.reading.scan_task": ("ScanTask",),
        "pylog.reading.scanned_bytes": (
            "ends_within_bytes",
            "PlannedBytes",
        ),
        "pylog.reading.timeline": ("merge_by_timestamp",),
        "pylog.record.byte_buffer": ("DEFAULT_MAX_DECOMPRESSED_BYTES",),
        "pylog.record.legacy_builder": ("LegacyBatchBuilder",),
        "pylog.record.record": (
            "Record",
            "RecordHeader",
        ),
        "pylog.record.record_batch_builder": ("RecordBatchBuilder",),
        "pylog.record_export": (
            "export",
            "ExportedFile",
        ),
        "pylog.record_lines.line_format": (
            "LineFormat",
            "VALUE_FORMATS",
        ),
        "pylog.record_search": (
            "search",
            "Search",
            "SearchSummary",
        ),
        "pylog.statistics.charts": ("TimeSteps",),
        "pylog.statistics.stats": (
            "LogStatistics",
            "stats",
        ),
        "pylog.tables.metadata_table": ("MetadataTable",),
        "pylog.tables.names": ("TABLE_NAMES",),
        "pylog.tables.tables": (
            "metadata_table",
            "read_table",
        ),
        "pylog.text.instants": (
            "parse_cleanup_time",
            "parse_duration",
            "parse_time",
        ),
        "pylog.text.names": (
            "json_name",
            "JSON_SCHEMA_VERSION",
        ),
        "pylog.text.words": ("printable",),
        "pylog.validation.log_append_info": (
            "AppendedBatches",
            "LogAppendInfo",
        ),
        "pylog.versions": ("show_versions",),
        "pylog.writing.compaction": (
            "compact",
            "CompactionSummary",
            "CompactionTotals",
            "PartitionCompaction",
        ),
        "pylog.writing.compaction_job": ("CompactionJob",),
        "pylog.writing.line_appender": ("LineAppender",),
        "pylog.writing.owned_directory": (
            "HeldBack",
            "own_log_directory",
        ),
        "pylog.writing.partitioner_names": ("PARTITIONER_NAMES",),
        "pylog.writing.record_removal": (
            "delete_records",
            "MovedOffset",
            "plan_record_deletion",
            "plan_truncation",
            "truncate_log",
        ),
        "pylog.writing.retention": (
            "apply_retention",
            "PartitionRetention",
            "RetentionSummary",
            "RetentionTotals",
        ),
        "pylog.writing.topics": (
            "alter_topic",
            "AlteredTopic",
            "create_topic",
            "delete_topic",
        ),
        "pylog.writing.write_job": ("WriteJob",),
        "pylog.writing.write_summary": (
            "PartitionSummary",
            "WriteJobSummary",
            "WriteSummary",
        ),
        "pylog.writing.write_topic": ("write_topic",),
    },
)

__all__ = ["__version__", *_PUBLIC.names]  # noqa: PLE0604 - text, as `LazyNames.names` says

if TYPE_CHECKING:
    # What type checkers see; tests/unit/test_public_names.py holds it against the list above.
    from pylog.admin.consumer_groups import CommittedOffset as CommittedOffset
    from pylog.admin.consumer_groups import ConsumerGroup as ConsumerGroup
    from pylog.admin.consumer_groups import GroupListing as GroupListing
    from pylog.admin.consumer_groups import GroupMember as GroupMember
    from pylog.admin.consumer_groups import groups as groups
    from pylog.admin.log_dirs import ListedPartition as ListedPartition
    from pylog.admin.log_dirs import PartitionListing as PartitionListing
    from pylog.admin.log_dirs import list_partitions as list_partitions
    from pylog.admin.topics import DescribedPartition as DescribedPartition
    from pylog.admin.topics import DescribedTopic as DescribedTopic
    from pylog.admin.topics import TopicDescription as TopicDescription
    from pylog.admin.topics import topics as topics
    from pylog.admin.transactions import ListedTransaction as ListedTransaction
    from pylog.admin.transactions import TransactionListing as TransactionListing
    from pylog.admin.transactions import transactions as transactions
    from pylog.checks.doctor import doctor as doctor
    from pylog.checks.repair import repair_copy as repair_copy
    from pylog.checks.report import DoctorReport as DoctorReport
    from pylog.checks.report import Finding as Finding
    from pylog.checks.report import LogDirectoryReport as LogDirectoryReport
    from pylog.checks.report import PartitionReport as PartitionReport
    from pylog.checks.report import RepairedPartition as RepairedPartition
    from pylog.checks.report import RepairSummary as RepairSummary
    from pylog.checks.report import Severity as Severity
    from pylog.cleaner.cleaning_task import CleaningTask as CleaningTask
    from pylog.cleaner.large_cleaning import GroupTask as GroupTask
    from pylog.cleaner.large_cleaning import LargeCleaning as LargeCleaning
    from pylog.cleaner.large_cleaning import LargeCleaningPlan as LargeCleaningPlan
    from pylog.cleaner.large_cleaning_tasks import RecordKeysTask as RecordKeysTask
    from pylog.cleaner.large_cleaning_tasks import SegmentTransactions as SegmentTransactions
    from pylog.cleaner.large_cleaning_tasks import (
        SegmentTransactionsTask as SegmentTransactionsTask,
    )
    from pylog.cleaner.log_cleaner import LogCleaner as LogCleaner
    from pylog.cleaner.log_snapshot import CleanedGroup as CleanedGroup
    from pylog.cleaner.log_snapshot import StagedCleaning as StagedCleaning
    from pylog.columnar.arrow_schema import record_schema as record_schema
    from pylog.config.broker_config import CleanerConfig as CleanerConfig
    from pylog.config.broker_config import LogManagerConfig as LogManagerConfig
    from pylog.config.broker_config import RecoveryMode as RecoveryMode
    from pylog.config.config_property import ConfigEntry as ConfigEntry
    from pylog.config.config_property import ConfigSource as ConfigSource
    from pylog.config.log_config import LogConfig as LogConfig
    from pylog.config.server_properties import ServerProperties as ServerProperties
    from pylog.duckdb import LogDatabase as LogDatabase
    from pylog.dump_log.dump import Dump as Dump
    from pylog.dump_log.dump import dump as dump
    from pylog.dump_log.report import FileReport as FileReport
    from pylog.errors import LogStorageError as LogStorageError
    from pylog.files.high_watermarks import HIGH_WATERMARKS as HIGH_WATERMARKS
    from pylog.files.offset_json_file import read_offset_json_file as read_offset_json_file
    from pylog.files.partition_metadata import format_uuid as format_uuid
    from pylog.files.partition_metadata import parse_uuid as parse_uuid
    from pylog.files.staged_files import StagedRecords as StagedRecords
    from pylog.internal_topics.decoders import DECODER_NAMES as DECODER_NAMES
    from pylog.internal_topics.decoders import DecoderName as DecoderName
    from pylog.internal_topics.versions import KafkaVersion as KafkaVersion
    from pylog.kernel_compilation import compile_kernels as compile_kernels
    from pylog.locations import absolute_location as absolute_location
    from pylog.locations import location as location
    from pylog.log.log_context import LogContext as LogContext
    from pylog.log.log_manager import LogManager as LogManager
    from pylog.log.log_segment import FetchDataInfo as FetchDataInfo
    from pylog.log.log_segment import FetchIsolation as FetchIsolation
    from pylog.log.metrics import CleanerMetrics as CleanerMetrics
    from pylog.log.metrics import LogManagerMetrics as LogManagerMetrics
    from pylog.log.metrics import LogMetrics as LogMetrics
    from pylog.log.retention import DeletedSegment as DeletedSegment
    from pylog.log.retention import RetentionReason as RetentionReason
    from pylog.log.unified_log import UnifiedLog as UnifiedLog
    from pylog.model import INTERNAL_TOPICS as INTERNAL_TOPICS
    from pylog.model import NO_PARTITION_LEADER_EPOCH as NO_PARTITION_LEADER_EPOCH
    from pylog.model import NO_PRODUCER_EPOCH as NO_PRODUCER_EPOCH
    from pylog.model import NO_PRODUCER_ID as NO_PRODUCER_ID
    from pylog.model import NO_SEQUENCE as NO_SEQUENCE
    from pylog.model import NO_TIMESTAMP as NO_TIMESTAMP
    from pylog.model import AbortedTransaction as AbortedTransaction
    from pylog.model import AppendOrigin as AppendOrigin
    from pylog.model import CompressionType as CompressionType
    from pylog.model import IsolationLevel as IsolationLevel
    from pylog.model import TimestampType as TimestampType
    from pylog.model import TopicPartition as TopicPartition
    from pylog.native.kernel import KeptCode as KeptCode
    from pylog.positions import EARLIEST as EARLIEST
    from pylog.positions import LATEST as LATEST
    from pylog.positions import MAX_TIMESTAMP as MAX_TIMESTAMP
    from pylog.positions import OffsetSpec as OffsetSpec
    from pylog.positions import OffsetSpecs as OffsetSpecs
    from pylog.positions import Timestamp as Timestamp
    from pylog.pushdown.comparison import Comparison as Comparison
    from pylog.pushdown.comparison import to_record_filter as to_record_filter
    from pylog.reading.damage import DamagedRange as DamagedRange
    from pylog.reading.damage import DamageReport as DamageReport
    from pylog.reading.damage import ReadMode as ReadMode
    from pylog.reading.discovery import PartitionDirectory as PartitionDirectory
    from pylog.reading.followed_directory import FollowedDirectory as FollowedDirectory
    from pylog.reading.followed_directory import FollowedLog as FollowedLog
    from pylog.reading.followed_directory import FollowedRecords as FollowedRecords
    from pylog.reading.followed_directory import follow as follow
    from pylog.reading.log_directory import LogDirectory as LogDirectory
    from pylog.reading.log_directory import choose_partitions as choose_partitions
    from pylog.reading.log_directory import open_directory as open_directory
    from pylog.reading.log_view import LogView as LogView
    from pylog.reading.record_filter import RecordFilter as RecordFilter
    from pylog.reading.record_stream import ConsumerRecord as ConsumerRecord
    from pylog.reading.removal_preview import Removal as Removal
    from pylog.reading.scan import Scan as Scan
    from pylog.reading.scan import scan as scan
    from pylog.reading.scan_task import ScanTask as ScanTask
    from pylog.reading.scanned_bytes import PlannedBytes as PlannedBytes
    from pylog.reading.scanned_bytes import ends_within_bytes as ends_within_bytes
    from pylog.reading.timeline import merge_by_timestamp as merge_by_timestamp
    from pylog.record.byte_buffer import (
        DEFAULT_MAX_DECOMPRESSED_BYTES as DEFAULT_MAX_DECOMPRESSED_BYTES,
    )
    from pylog.record.legacy_builder import LegacyBatchBuilder as LegacyBatchBuilder
    from pylog.record.record import Record as Record
    from pylog.record.record import RecordHeader as RecordHeader
    from pylog.record.record_batch_builder import RecordBatchBuilder as RecordBatchBuilder
    from pylog.record_export import ExportedFile as ExportedFile
    from pylog.record_export import export as export
    from pylog.record_lines.line_format import VALUE_FORMATS as VALUE_FORMATS
    from pylog.record_lines.line_format import LineFormat as LineFormat
    from pylog.record_search import Search as Search
    from pylog.record_search import SearchSummary as SearchSummary
    from pylog.record_search import search as search
    from pylog.statistics.charts import TimeSteps as TimeSteps
    from pylog.statistics.stats import LogStatistics as LogStatistics
    from pylog.statistics.stats import stats as stats
    from pylog.tables.metadata_table import MetadataTable as MetadataTable
    from pylog.tables.names import TABLE_NAMES as TABLE_NAMES
    from pylog.tables.tables import metadata_table as metadata_table
    from pylog.tables.tables import read_table as read_table
    from pylog.text.instants import parse_cleanup_time as parse_cleanup_time
    from pylog.text.instants import parse_duration as parse_duration
    from pylog.text.instants import parse_time as parse_time
    from pylog.text.names import JSON_SCHEMA_VERSION as JSON_SCHEMA_VERSION
    from pylog.text.names import json_name as json_name
    from pylog.text.words import printable as printable
    from pylog.validation.log_append_info import AppendedBatches as AppendedBatches
    from pylog.validation.log_append_info import LogAppendInfo as LogAppendInfo
    from pylog.versions import show_versions as show_versions
    from pylog.writing.compaction import CompactionSummary as CompactionSummary
    from pylog.writing.compaction import CompactionTotals as CompactionTotals
    from pylog.writing.compaction import PartitionCompaction as PartitionCompaction
    from pylog.writing.compaction import compact as compact
    from pylog.writing.compaction_job import CompactionJob as CompactionJob
    from pylog.writing.line_appender import LineAppender as LineAppender
    from pylog.writing.owned_directory import HeldBack as HeldBack
    from pylog.writing.owned_directory import own_log_directory as own_log_directory
    from pylog.writing.partitioner_names import PARTITIONER_NAMES as PARTITIONER_NAMES
    from pylog.writing.record_removal import MovedOffset as MovedOffset
    from pylog.writing.record_removal import delete_records as delete_records
    from pylog.writing.record_removal import plan_record_deletion as plan_record_deletion
    from pylog.writing.record_removal import plan_truncation as plan_truncation
    from pylog.writing.record_removal import truncate_log as truncate_log
    from pylog.writing.retention import PartitionRetention as PartitionRetention
    from pylog.writing.retention import RetentionSummary as RetentionSummary
    from pylog.writing.retention import RetentionTotals as RetentionTotals
    from pylog.writing.retention import apply_retention as apply_retention
    from pylog.writing.topics import AlteredTopic as AlteredTopic
    from pylog.writing.topics import alter_topic as alter_topic
    from pylog.writing.topics import create_topic as create_topic
    from pylog.writing.topics import delete_topic as delete_topic
    from pylog.writing.write_job import WriteJob as WriteJob
    from pylog.writing.write_summary import PartitionSummary as PartitionSummary
    from pylog.writing.write_summary import WriteJobSummary as WriteJobSummary
    from pylog.writing.write_summary import WriteSummary as WriteSummary
    from pylog.writing.write_topic import write_topic as write_topic

else:
    __getattr__ = _PUBLIC.load


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
