# Made by make import-graph from the list in pylog.

from pylog.lazy_modules import LazyNames
from pylog import duckdb as duckdb
from pylog import errors as errors
from pylog import jobs as jobs
from pylog import logs as logs
from pylog import polars as polars
from pylog import results as results
from pylog import testing as testing
from pylog.admin.consumer_groups import groups as groups
from pylog.admin.log_dirs import list_partitions as list_partitions
from pylog.admin.topics import topics as topics
from pylog.admin.transactions import transactions as transactions
from pylog.checks.doctor import doctor as doctor
from pylog.checks.repair import repair_copy as repair_copy
from pylog.columnar.arrow_schema import record_schema as record_schema
from pylog.config.broker_config import RecoveryMode as RecoveryMode
from pylog.config.log_config import LogConfig as LogConfig
from pylog.config.server_properties import ServerProperties as ServerProperties
from pylog.dump_log.dump import dump as dump
from pylog.errors import LogStorageError as LogStorageError
from pylog.files.high_watermarks import HIGH_WATERMARKS as HIGH_WATERMARKS
from pylog.files.partition_metadata import format_uuid as format_uuid
from pylog.files.partition_metadata import parse_uuid as parse_uuid
from pylog.internal_topics.decoders import DECODER_NAMES as DECODER_NAMES
from pylog.internal_topics.decoders import DecoderName as DecoderName
from pylog.internal_topics.versions import KafkaVersion as KafkaVersion
from pylog.locations import location as location
from pylog.model import CompressionType as CompressionType
from pylog.model import EARLIEST as EARLIEST
from pylog.model import FromEnd as FromEnd
from pylog.model import INTERNAL_TOPICS as INTERNAL_TOPICS
from pylog.model import IsolationLevel as IsolationLevel
from pylog.model import LATEST as LATEST
from pylog.model import MAX_TIMESTAMP as MAX_TIMESTAMP
from pylog.model import OffsetSpec as OffsetSpec
from pylog.model import OffsetSpecs as OffsetSpecs
from pylog.model import Timestamp as Timestamp
from pylog.model import TimestampType as TimestampType
from pylog.model import TopicPartition as TopicPartition
from pylog.reading.damage import ReadMode as ReadMode
from pylog.reading.followed_directory import follow as follow
from pylog.reading.log_directory import open_directory as open_directory
from pylog.reading.record_filter import RecordFilter as RecordFilter
from pylog.reading.scan import scan as scan
from pylog.reading.timeline import merge_by_timestamp as merge_by_timestamp
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES as DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.record_export import export as export
from pylog.record_search import search as search
from pylog.recovery.adopt import adopt as adopt
from pylog.recovery.cluster_info import info as info
from pylog.recovery.first_aid import first_aid as first_aid
from pylog.server.broker_server import serve as serve
from pylog.statistics.stats import stats as stats
from pylog.statistics.timeline import timeline as timeline
from pylog.tables import TABLE_NAMES as TABLE_NAMES
from pylog.tables.tables import read_table as read_table
from pylog.versions import show_versions as show_versions
from pylog.writing import KEY_PARTITIONER_NAMES as KEY_PARTITIONER_NAMES
from pylog.writing import PARTITIONER_NAMES as PARTITIONER_NAMES
from pylog.writing.compaction import compact as compact
from pylog.writing.record_removal import delete_records as delete_records
from pylog.writing.record_removal import truncate_log as truncate_log
from pylog.writing.retention import apply_retention as apply_retention
from pylog.writing.topics import alter_topic as alter_topic
from pylog.writing.topics import create_topic as create_topic
from pylog.writing.topics import delete_topic as delete_topic
from pylog.writing.write_topic import write_topic as write_topic

__all__: list[str]
_PUBLIC: LazyNames
__version__: str
