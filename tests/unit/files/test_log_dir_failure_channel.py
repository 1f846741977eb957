from __future__ import annotations

import pytest

from pylog.errors import KafkaStorageError
from pylog.files.log_dir_failure_channel import LogDirFailureChannel

FIRST = KafkaStorageError("cannot write", "/data/a/t-0/0.log")
SECOND = KafkaStorageError("cannot fsync", "/data/a/t-1/0.log")


def fail_twice(failures: LogDirFailureChannel) -> None:
    for error in (FIRST, SECOND):
        failures.add_offline_log_directory("/data/a", error)


def test_the_first_error_of_a_directory_is_the_one_that_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = LogDirFailureChannel()
    fail_twice(failures)
    assert (failures.is_offline("/data/a"), failures.is_offline("/data/b")) == (True, False)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "log directory /data/a goes offline" in caplog.text
    assert "cannot write" in caplog.text
    failures.ensure_online("/data/b")
    with pytest.raises(KafkaStorageError, match=r"is offline since an I/O error .*cannot write"):
        failures.ensure_online("/data/a")


def test_an_owner_who_reports_failures_need_not_have_them_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = LogDirFailureChannel(is_logged=False)
    fail_twice(failures)
    assert failures.is_offline("/data/a")
    assert caplog.records == []
