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
        "pylog.admin.schemas": (
            "SchemaListing",
            "SchemaUse",
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
        "pylog.columnar.record_masking": ("MaskRule", "RecordMasking"),
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
        "pylog.comparison.diff_summary": (
            "Difference",
            "DiffKind",
            "DiffSummary",
            "PartitionDiff",
        ),
        "pylog.dump_log.dump": ("Dump",),
        "pylog.dump_log.report": ("FileReport",),
        "pylog.internal_topics.registry_state": (
            "RegistryProblem",
            "SchemaState",
            "StoredSchema",
            "SubjectSettings",
        ),
        "pylog.internal_topics.schema_registry": ("SchemaReference",),
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
        "pylog.reading.typed_records": ("TypedRecords", "UndecodableReport"),
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
        "pylog.recovery.cut_transactions": ("CutTransaction",),
        "pylog.recovery.extract": ("ExtractedPartition", "Extraction"),
        "pylog.recovery.first_aid": ("FirstAid",),
        "pylog.recovery.merge_summary": (
            "GapCause",
            "MergeBranch",
            "MergeCut",
            "MergeGap",
            "MergeSource",
            "MergeSummary",
            "MergeTransaction",
            "MergedPartition",
            "MergedRange",
            "MovedGroup",
        ),
        "pylog.recovery.metadata_batches": ("MetadataAppend",),
        "pylog.recovery.places_of_records": ("PlaceOfRecords",),
        "pylog.recovery.partition_plan": ("Fate", "PlannedPartition"),
        "pylog.recovery.rewritten_directory": ("RewrittenPartition", "RewrittenRecords"),
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
        "pylog.writing.held_back": ("HeldBack",),
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
