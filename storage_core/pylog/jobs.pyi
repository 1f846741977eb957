# Made by make import-graph from the list in pylog.jobs.

from pylog.lazy_modules import LazyNames
from pylog.cleaner.cleaning_task import CleaningTask as CleaningTask
from pylog.cleaner.cleaning_task import RecordKeysTask as RecordKeysTask
from pylog.cleaner.cleaning_task import SegmentTransactions as SegmentTransactions
from pylog.cleaner.cleaning_task import SegmentTransactionsTask as SegmentTransactionsTask
from pylog.cleaner.large_cleaning import GroupTask as GroupTask
from pylog.cleaner.large_cleaning import LargeCleaning as LargeCleaning
from pylog.cleaner.large_cleaning import LargeCleaningPlan as LargeCleaningPlan
from pylog.cleaner.log_snapshot import CleanedGroup as CleanedGroup
from pylog.cleaner.log_snapshot import StagedCleaning as StagedCleaning
from pylog.files.offset_json_file import read_offset_json_file as read_offset_json_file
from pylog.files.staged_files import StagedRecords as StagedRecords
from pylog.installation import install_command as install_command
from pylog.locations import absolute_location as absolute_location
from pylog.model import check_specs as check_specs
from pylog.pushdown.comparison import Comparison as Comparison
from pylog.pushdown.comparison import to_record_filter as to_record_filter
from pylog.reading.log_directory import choose_partitions as choose_partitions
from pylog.reading.planned_bytes import PlannedBytes as PlannedBytes
from pylog.reading.scan_task import ScanTask as ScanTask
from pylog.reading.splitting import ends_within_bytes as ends_within_bytes
from pylog.record_export import open_sink as open_sink
from pylog.record_lines.line_format import LineFormat as LineFormat
from pylog.record_lines.line_format import VALUE_FORMATS as VALUE_FORMATS
from pylog.recovery.adopt import end_adoption as end_adoption
from pylog.recovery.restore_groups import restore_groups as restore_groups
from pylog.server.sasl import read_users as read_users
from pylog.server.socket_server import tls_context as tls_context
from pylog.tables.tables import metadata_table as metadata_table
from pylog.text.instants import calendar_text as calendar_text
from pylog.text.instants import parse_cleanup_time as parse_cleanup_time
from pylog.text.instants import parse_duration as parse_duration
from pylog.text.instants import parse_time as parse_time
from pylog.text.names import JSON_SCHEMA_VERSION as JSON_SCHEMA_VERSION
from pylog.text.names import json_name as json_name
from pylog.text.words import counted as counted
from pylog.text.words import format_bytes as format_bytes
from pylog.text.words import offsets_text as offsets_text
from pylog.text.words import printable as printable
from pylog.writing.cleanup import CleanupOption as CleanupOption
from pylog.writing.cleanup import cleanup_options as cleanup_options
from pylog.writing.compaction_job import CompactionJob as CompactionJob
from pylog.writing.line_appender import LineAppender as LineAppender
from pylog.writing.record_removal import plan_record_deletion as plan_record_deletion
from pylog.writing.record_removal import plan_truncation as plan_truncation
from pylog.writing.write_job import WriteJob as WriteJob

__all__: list[str]
_PUBLIC: LazyNames
