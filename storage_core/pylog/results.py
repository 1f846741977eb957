"""What the verbs of `pylog` return: scans, reports, listings and summaries.

They are here to be named, in annotations and tests; nobody makes one by hand.
"""

from __future__ import annotations

from pylog.lazy_modules import LazyNames

_PUBLIC = LazyNames(
    __name__,
    {
        "pylog.admin.consumer_groups": (
            "CommittedOffset",
            "ConsumerGroup",
            "GroupListing",
            "GroupMember",
        ),
        "pylog.admin.log_dirs": (
            "ListedLogDirectory",
            "ListedPartition",
            "PartitionListing",
        ),
        "pylog.admin.share_groups": ("SharePartition",),
        "pylog.admin.topics": (
            "DescribedPartition",
            "DescribedTopic",
            "TopicDescription",
        ),
        "pylog.admin.transactions": (
            "ListedTransaction",
            "TransactionListing",
        ),
        "pylog.findings.finding": ("Effect", "Finding", "Severity"),
        "pylog.checks.partition_report": ("LogDirectoryReport", "PartitionReport"),
        "pylog.checks.report": (
            "DoctorReport",
            "RepairedPartition",
            "RepairSummary",
        ),
        "pylog.checks.affected_offsets": ("AffectedOffsets",),
        "pylog.checks.verdict": ("Verdict",),
        "pylog.cleaner.cleanable_offsets": ("NotCleaned",),
        "pylog.config.config_property": (
            "ConfigEntry",
            "ConfigSource",
        ),
        "pylog.dump_log.dump": ("Dump",),
        "pylog.dump_log.report": ("FileReport",),
        "pylog.log.retention": (
            "DeletedSegment",
            "FutureSegment",
            "RetentionReason",
        ),
        "pylog.reading.damage": (
            "DamagedRange",
            "DamageReport",
        ),
        "pylog.reading.discovery": ("PartitionDirectory",),
        "pylog.reading.followed_directory": ("FollowedDirectory",),
        "pylog.reading.followed_partition": ("FollowedLog",),
        "pylog.reading.followed_records": ("FollowedRecords",),
        "pylog.reading.log_directory": ("LogDirectory",),
        "pylog.reading.log_view": ("LogView",),
        "pylog.reading.removal_preview": ("Removal",),
        "pylog.reading.consumer_record": ("ConsumerRecord",),
        "pylog.reading.scan": ("Scan",),
        "pylog.record_export": ("ExportedFile",),
        "pylog.record_search": (
            "Search",
            "SearchSummary",
        ),
        "pylog.recovery.adoption_summary": (
            "AdoptedPartition",
            "AdoptionSummary",
            "AppendedRecords",
        ),
        "pylog.recovery.cluster_info": (
            "BrokerSettings",
            "ClusterInfo",
            "InfoMetadataCopy",
            "InfoNode",
            "NodeLogDirectory",
            "Quorum",
            "QuorumVoter",
            "RegisteredBroker",
            "RegisteredController",
        ),
        "pylog.recovery.first_aid": ("FirstAid",),
        "pylog.recovery.metadata_batches": ("MetadataAppend",),
        "pylog.recovery.partition_plan": ("Fate", "PlannedPartition"),
        "pylog.recovery.restore_groups": ("RestoredGroups", "RestoredOffset"),
        "pylog.server.broker_server": ("BrokerServer",),
        "pylog.statistics.stats": ("LogStatistics",),
        "pylog.statistics.batches": ("TimeSteps",),
        "pylog.statistics.timeline": (
            "OffsetRange",
            "PartitionTimeline",
            "Timeline",
        ),
        "pylog.tables.metadata_table": ("MetadataTable",),
        "pylog.writing.compaction": (
            "CompactionSummary",
            "CompactionTotals",
            "PartitionCompaction",
        ),
        "pylog.writing.owned_directory": ("HeldBack",),
        "pylog.writing.record_removal": ("MovedOffset",),
        "pylog.writing.retention": (
            "PartitionRetention",
            "RetentionSummary",
            "RetentionTotals",
        ),
        "pylog.writing.topics": ("AlteredTopic",),
        "pylog.writing.write_summary": (
            "PartitionSummary",
            "CommittedRun",
            "WriteJobSummary",
            "WriteSummary",
        ),
    },
)

__all__ = [*_PUBLIC.names]  # noqa: PLE0604 - names, all of them strings
__getattr__ = _PUBLIC.load


def __dir__() -> list[str]:
    return __all__
