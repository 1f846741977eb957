"""Properties of a log manager and of a log cleaner."""

from __future__ import annotations

import pytest

from pylog.config import CleanerConfig, LogManagerConfig

MANAGER_PROPERTIES = [
    ("log.initial.task.delay.ms", "30000", "-1"),
    ("log.retention.check.interval.ms", "300000", "0"),
    ("log.flush.scheduler.interval.ms", "9223372036854775807", "-1"),
    ("log.flush.offset.checkpoint.interval.ms", "60000", "-1"),
    ("log.flush.start.offset.checkpoint.interval.ms", "60000", "-1"),
    ("replica.high.watermark.checkpoint.interval.ms", "5000", "0"),
    ("num.recovery.threads.per.data.dir", "2", "0"),
    ("producer.id.expiration.ms", "86400000", "0"),
    ("producer.id.expiration.check.interval.ms", "600000", "0"),
    ("transaction.max.timeout.ms", "900000", "2147483648"),
]


def test_log_manager_defaults_are_those_of_kafka() -> None:
    expected = {name: default for name, default, _ in MANAGER_PROPERTIES}
    assert LogManagerConfig().properties() == expected


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, _, text in MANAGER_PROPERTIES])
def test_values_out_of_range_of_a_log_manager_are_refused(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=rf"^property {name} is {text}, expected a whole number"):
        LogManagerConfig.from_properties({name: text})


def test_a_cleaner_has_more_than_a_mebibyte_for_each_thread() -> None:
    assert CleanerConfig(threads=2, dedupe_buffer_size=2_097_154).threads == 2
    with pytest.raises(
        ValueError, match=r"^property log\.cleaner\.dedupe\.buffer\.size is 2097153"
    ):
        CleanerConfig(threads=2, dedupe_buffer_size=2_097_153)
    with pytest.raises(ValueError, match=r"^property log\.cleaner\.threads is 0"):
        CleanerConfig(threads=0)
    with pytest.raises(ValueError, match=r"^property log\.cleaner\.io\.max.* is 0, expected a num"):
        CleanerConfig(io_max_bytes_per_second=0)
