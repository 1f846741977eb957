# Made by make import-graph from the list in pylog.results.

from pylog.lazy_modules import LazyNames
from pylog.admin.consumer_groups import CommittedOffset as CommittedOffset
from pylog.admin.consumer_groups import ConsumerGroup as ConsumerGroup
from pylog.admin.consumer_groups import GroupListing as GroupListing
from pylog.admin.consumer_groups import GroupMember as GroupMember
from pylog.admin.log_dirs import ListedPartition as ListedPartition
from pylog.admin.log_dirs import PartitionListing as PartitionListing
from pylog.admin.share_groups import SharePartition as SharePartition
from pylog.admin.topics import DescribedPartition as DescribedPartition
from pylog.admin.topics import DescribedTopic as DescribedTopic
from pylog.admin.topics import TopicDescription as TopicDescription
from pylog.admin.transactions import ListedTransaction as ListedTransaction
from pylog.admin.transactions import TransactionListing as TransactionListing
from pylog.checks.findings import Finding as Finding
from pylog.checks.findings import Severity as Severity
from pylog.checks.report import DoctorReport as DoctorReport
from pylog.checks.report import LogDirectoryReport as LogDirectoryReport
from pylog.checks.report import PartitionReport as PartitionReport
from pylog.checks.report import RepairSummary as RepairSummary
from pylog.checks.report import RepairedPartition as RepairedPartition
from pylog.cleaner.cleanable_offsets import NotCleaned as NotCleaned
from pylog.config.config_property import ConfigEntry as ConfigEntry
from pylog.config.config_property import ConfigSource as ConfigSource
from pylog.dump_log.dump import Dump as Dump
from pylog.dump_log.report import FileReport as FileReport
from pylog.log.retention import DeletedSegment as DeletedSegment
from pylog.log.retention import FutureSegment as FutureSegment
from pylog.log.retention import RetentionReason as RetentionReason
from pylog.reading.consumer_record import ConsumerRecord as ConsumerRecord
from pylog.reading.damage import DamageReport as DamageReport
from pylog.reading.damage import DamagedRange as DamagedRange
from pylog.reading.discovery import PartitionDirectory as PartitionDirectory
from pylog.reading.followed_directory import FollowedDirectory as FollowedDirectory
from pylog.reading.followed_directory import FollowedLog as FollowedLog
from pylog.reading.followed_directory import FollowedRecords as FollowedRecords
from pylog.reading.log_directory import LogDirectory as LogDirectory
from pylog.reading.log_view import LogView as LogView
from pylog.reading.removal_preview import Removal as Removal
from pylog.reading.scan import Scan as Scan
from pylog.record_export import ExportedFile as ExportedFile
from pylog.record_search import Search as Search
from pylog.record_search import SearchSummary as SearchSummary
from pylog.server.broker_server import BrokerServer as BrokerServer
from pylog.statistics.batches import TimeSteps as TimeSteps
from pylog.statistics.stats import LogStatistics as LogStatistics
from pylog.statistics.timeline import OffsetRange as OffsetRange
from pylog.statistics.timeline import PartitionTimeline as PartitionTimeline
from pylog.statistics.timeline import Timeline as Timeline
from pylog.tables.metadata_table import MetadataTable as MetadataTable
from pylog.writing.compaction import CompactionSummary as CompactionSummary
from pylog.writing.compaction import CompactionTotals as CompactionTotals
from pylog.writing.compaction import PartitionCompaction as PartitionCompaction
from pylog.writing.owned_directory import HeldBack as HeldBack
from pylog.writing.record_removal import MovedOffset as MovedOffset
from pylog.writing.retention import PartitionRetention as PartitionRetention
from pylog.writing.retention import RetentionSummary as RetentionSummary
from pylog.writing.retention import RetentionTotals as RetentionTotals
from pylog.writing.topics import AlteredTopic as AlteredTopic
from pylog.writing.write_summary import CommittedRun as CommittedRun
from pylog.writing.write_summary import PartitionSummary as PartitionSummary
from pylog.writing.write_summary import WriteJobSummary as WriteJobSummary
from pylog.writing.write_summary import WriteSummary as WriteSummary

__all__: list[str]
_PUBLIC: LazyNames
