"""What engines and programs build on: tasks that are shipped, staged and committed, and parsers.

A verb of `pylog` does its work in one process. Spark's connector, the jobs and the command line use
these to cut the same work into parts, and to read and print what their users type and see.
"""

from __future__ import annotations

from pylog.lazy_modules import LazyNames

_PUBLIC = LazyNames(
    __name__,
    {
        "pylog.admin.schemas": ("schemas",),
        "pylog.cleaner.cleaning_task": (
            "CleaningTask",
            "RecordKeysTask",
            "SegmentTransactions",
            "SegmentTransactionsTask",
        ),
        "pylog.cleaner.large_cleaning": (
            "GroupTask",
            "LargeCleaning",
            "LargeCleaningPlan",
        ),
        "pylog.cleaner.log_snapshot": (
            "CleanedGroup",
            "StagedCleaning",
        ),
        "pylog.comparison.diff": ("diff",),
        "pylog.comparison.diff_summary": ("DIFF_MODES",),
        "pylog.columnar.nested_casts": ("cast_leaves",),
        "pylog.columnar.record_masking": ("read_mask_rules",),
        "pylog.files.offset_json_file": ("read_offset_json_file",),
        "pylog.files.staged_files": ("StagedRecords",),
        "pylog.internal_topics.schema_registry": ("COMPATIBILITY_LEVELS",),
        "pylog.installation": ("install_command",),
        "pylog.locations": ("absolute_location",),
        "pylog.model": ("check_specs",),
        "pylog.pushdown.comparison": (
            "Comparison",
            "to_record_filter",
        ),
        "pylog.pushdown.field_comparisons": ("to_field_condition",),
        "pylog.reading.log_directory": ("choose_partitions", "open_each"),
        "pylog.reading.planned_bytes": ("PlannedBytes",),
        "pylog.reading.scan_task": ("ScanTask",),
        "pylog.reading.splitting": ("ends_within_bytes",),
        "pylog.reading.value_format": ("ValueFormat",),
        "pylog.record_export": ("open_sink",),
        "pylog.record_lines.line_format": (
            "LineFormat",
            "VALUE_FORMATS",
        ),
        "pylog.recovery.adopt": ("end_adoption",),
        "pylog.recovery.adopt_cluster": ("adopt_cluster",),
        "pylog.recovery.erase": ("erase",),
        "pylog.recovery.extract": ("extract",),
        "pylog.recovery.mask": ("mask",),
        "pylog.recovery.merge": ("merge",),
        "pylog.recovery.merge_cuts": ("MergeCuts",),
        "pylog.recovery.merge_sources": ("merge_partitions",),
        "pylog.recovery.part_options": ("diff_options", "extract_options", "merge_options"),
        "pylog.recovery.partwise_directory": ("PartwiseDirectory",),
        "pylog.recovery.restore_groups": ("restore_groups",),
        "pylog.recovery.running_plan": ("plan_for_running",),
        "pylog.server.sasl": ("read_users",),
        "pylog.server.socket_server": ("tls_context",),
        "pylog.tables.latest": ("decoded_latest",),
        "pylog.tables.tables": ("metadata_table",),
        "pylog.text.documents": ("document_of",),
        "pylog.text.instants": (
            "calendar_text",
            "parse_cleanup_time",
            "parse_duration",
            "parse_time",
        ),
        "pylog.text.names": (
            "json_name",
            "JSON_SCHEMA_VERSION",
        ),
        "pylog.text.words": (
            "counted",
            "format_bytes",
            "offsets_text",
            "printable",
        ),
        "pylog.writing.cleanup": (
            "CleanupOption",
            "cleanup_options",
        ),
        "pylog.writing.compaction_job": ("CompactionJob",),
        "pylog.writing.line_appender": ("LineAppender",),
        "pylog.writing.record_removal": (
            "plan_record_deletion",
            "plan_truncation",
        ),
        "pylog.writing.schema_registration": (
            "SchemaRegistration",
            "plan_registration",
            "register_schemas",
        ),
        "pylog.writing.write_job": ("WriteJob",),
        "pylog.writing.writer_schema": ("WriterSchema",),
    },
)

__all__ = [*_PUBLIC.names]  # noqa: PLE0604 - names, all of them strings
__getattr__ = _PUBLIC.load


def __dir__() -> list[str]:
    return __all__
