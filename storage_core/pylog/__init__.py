"""Apache Kafka's on-disk log without a broker.

The verbs, and the values that their callers pass in. What verbs return is in `pylog.results`, what
owns a log in `pylog.logs`, what engines build on in `pylog.jobs`, what can go wrong in
`pylog.errors`. Each name is loaded at its first use, so that ``import pylog`` and the command line
start without NumPy, Numba and Arrow. Values that a caller passes in never need those.
"""

from __future__ import annotations

import logging

from pylog.lazy_modules import LazyNames

__version__ = "0.1.0"

# The user of the library decides where its warnings go, by configuring logging or not.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# The one list of public names, by the module that each is defined in; the file for type checkers
# beside this one is made from it.
_PUBLIC = LazyNames(
    __name__,
    {
        "pylog.admin.consumer_groups": ("groups",),
        "pylog.admin.log_dirs": ("list_partitions",),
        "pylog.admin.topics": ("topics",),
        "pylog.admin.transactions": ("transactions",),
        "pylog.checks.doctor": ("doctor",),
        "pylog.checks.repair": ("repair_copy",),
        "pylog.columnar.arrow_schema": ("record_schema",),
        "pylog.config.broker_config": ("RecoveryMode",),
        "pylog.config.log_config": ("LogConfig",),
        "pylog.config.server_properties": ("ServerProperties",),
        "pylog.dump_log.dump": ("dump",),
        "pylog.errors": ("LogStorageError",),
        "pylog.files.high_watermarks": ("HIGH_WATERMARKS",),
        "pylog.files.partition_metadata": (
            "format_uuid",
            "parse_uuid",
        ),
        "pylog.internal_topics.decoders": (
            "DECODER_NAMES",
            "DecoderName",
        ),
        "pylog.internal_topics.versions": ("KafkaVersion",),
        "pylog.locations": ("location",),
        "pylog.model": (
            "CompressionType",
            "EARLIEST",
            "FromEnd",
            "INTERNAL_TOPICS",
            "IsolationLevel",
            "LATEST",
            "MAX_TIMESTAMP",
            "OffsetSpec",
            "OffsetSpecs",
            "Timestamp",
            "TimestampType",
            "TopicPartition",
        ),
        "pylog.reading.damage": ("ReadMode",),
        "pylog.reading.followed_directory": ("follow",),
        "pylog.reading.log_directory": ("open_directory",),
        "pylog.reading.record_filter": ("RecordFilter",),
        "pylog.reading.scan": ("scan",),
        "pylog.reading.timeline": ("merge_by_timestamp",),
        "pylog.record.byte_buffer": ("DEFAULT_MAX_DECOMPRESSED_BYTES",),
        "pylog.record_export": ("export",),
        "pylog.record_search": ("search",),
        "pylog.server.broker_server": ("serve",),
        "pylog.recovery.cluster_info": ("info",),
        "pylog.recovery.adopt": ("adopt",),
        "pylog.recovery.first_aid": ("first_aid",),
        "pylog.statistics.stats": ("stats",),
        "pylog.statistics.timeline": ("timeline",),
        "pylog.tables": ("TABLE_NAMES",),
        "pylog.tables.tables": ("read_table",),
        "pylog.versions": ("show_versions",),
        "pylog.writing": ("KEY_PARTITIONER_NAMES", "PARTITIONER_NAMES"),
        "pylog.writing.compaction": ("compact",),
        "pylog.writing.record_removal": (
            "delete_records",
            "truncate_log",
        ),
        "pylog.writing.retention": ("apply_retention",),
        "pylog.writing.topics": (
            "alter_topic",
            "create_topic",
            "delete_topic",
        ),
        "pylog.writing.write_topic": ("write_topic",),
    },
    modules=("duckdb", "errors", "jobs", "logs", "polars", "results", "testing"),
)

__all__ = ["__version__", *_PUBLIC.names]  # noqa: PLE0604 - names, all of them strings
__getattr__ = _PUBLIC.load


def __dir__() -> list[str]:
    return sorted({*__all__, *_PUBLIC.modules})
