"""Owning a log: `LogManager` and `UnifiedLog` with Kafka's names and rules, and what they take.

Each name is loaded at its first use; ``pylog.logs.LogManager`` needs no import but ``pylog``.
"""

from __future__ import annotations

from pylog.lazy_modules import LazyNames

_PUBLIC = LazyNames(
    __name__,
    {
        "pylog.cleaner.log_cleaner": ("LogCleaner",),
        "pylog.config.broker_config": (
            "CleanerConfig",
            "LogManagerConfig",
        ),
        "pylog.log.log_manager": ("LogManager",),
        "pylog.log.log_context": ("LogContext",),
        "pylog.log.log_segment": (
            "FetchDataInfo",
            "FetchIsolation",
        ),
        "pylog.log.metrics": (
            "CleanerMetrics",
            "LogManagerMetrics",
            "LogMetrics",
        ),
        "pylog.log.unified_log": ("UnifiedLog",),
        "pylog.model": (
            "AbortedTransaction",
            "AppendOrigin",
            "NO_PARTITION_LEADER_EPOCH",
            "NO_PRODUCER_EPOCH",
            "NO_PRODUCER_ID",
            "NO_SEQUENCE",
            "NO_TIMESTAMP",
        ),
        "pylog.record.legacy_builder": ("LegacyBatchBuilder",),
        "pylog.record.record": (
            "Record",
            "RecordHeader",
        ),
        "pylog.record.record_batch_builder": ("RecordBatchBuilder",),
        "pylog.validation.log_append_info": (
            "AppendedBatches",
            "LogAppendInfo",
        ),
        "pylog.writing.owned_directory": ("own_log_directory",),
    },
)

__all__ = [*_PUBLIC.names]  # noqa: PLE0604 - names, all of them strings
__getattr__ = _PUBLIC.load


def __dir__() -> list[str]:
    return __all__
