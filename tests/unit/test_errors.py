from __future__ import annotations

import errno
import inspect
import pickle
from pathlib import Path

import pytest

from pylog import errors
from pylog.errors import (
    CorruptCheckpointError,
    CorruptRecordError,
    InvalidTimestampError,
    KafkaStorageError,
    LogLockedError,
    LogStorageError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    RecordValidationError,
    UnexpectedAppendOffsetError,
)

LOG = Path("/logs/web-events-0/00000000000000000000.log")
OTHER_ARGUMENTS: dict[type[LogStorageError], tuple[object, ...]] = {
    LogStorageError: ("wrong",),
    errors.DivergedReplicasError: (["orders-0: two histories"],),
    OffsetOutOfRangeError: ("web-events-0", 7, 8, 9),
    errors.OffsetAboveHighWatermarkError: ("web-events-0", 8, 5, 7, 9),
    errors.RecoveryRefusedError: ("zeros follow", LOG, 7, 2, 20),
    KafkaStorageError: ("cannot write", LOG, 7, errno.ENOSPC),
    LogLockedError: ("held", LOG, 4711),
    RecordValidationError: ("one record is wrong", ((3, "no key"),), "web-events-0"),
    InvalidTimestampError: ("one record is wrong", ((3, "too old"),), "web-events-0"),
    UnexpectedAppendOffsetError: ("below the end", "web-events-0", 7, 9),
    errors.OffsetInsideBatchError: ("web-events-0", 7, 5, 9),
    errors.UndecodableValueError: ("no number", "orders-0", 7, "key", 5),
    errors.UnknownTopicConfigError: (("orders", "web"),),
    errors.UnknownTopicOrPartitionError: ("no topic web-events",),
}


ERROR_CLASSES = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, LogStorageError)
]


def build(error_class: type[LogStorageError]) -> LogStorageError:
    arguments = OTHER_ARGUMENTS.get(error_class)
    if arguments is None:
        located = "path" in inspect.signature(error_class).parameters
        arguments = ("wrong", LOG, 7) if located else ("wrong", "web-events-0")
    return error_class(*arguments)


@pytest.mark.parametrize("error_class", ERROR_CLASSES)
def test_every_error_survives_pickling_with_all_it_knows(
    error_class: type[LogStorageError],
) -> None:
    error = build(error_class)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(copy) is error_class
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert copy.args == error.args


@pytest.mark.parametrize("error_class", ERROR_CLASSES)
def test_every_error_has_a_text_of_one_line(error_class: type[LogStorageError]) -> None:
    text = str(build(error_class))
    assert text
    assert "\n" not in text


def test_storage_error_keeps_the_errno_and_names_file_and_byte() -> None:
    error = KafkaStorageError("I/O error: cannot write 61 bytes", LOG, 122, errno.EIO)
    assert error.errno == errno.EIO
    assert str(error) == f"{LOG} at byte 122: I/O error: cannot write 61 bytes"


def test_an_error_about_a_file_begins_with_the_file_and_the_byte() -> None:
    assert str(CorruptCheckpointError("line 1 is 'x', expected 0", LOG)) == (
        f"{LOG}: line 1 is 'x', expected 0"
    )
    assert str(CorruptRecordError("size is 7", LOG, 61)) == f"{LOG} at byte 61: size is 7"
    assert str(CorruptRecordError("size is 7", None, 61)) == "at byte 61: size is 7"
    assert str(CorruptRecordError("size is 7")) == "size is 7"


def test_an_offset_outside_an_empty_log_is_told_apart_from_one_outside_a_range() -> None:
    assert str(OffsetOutOfRangeError("orders-0", 3, 57, 57)) == (
        "offset 3 of orders-0 is out of range: the log holds no records, and its next offset is 57"
    )
    assert str(OffsetOutOfRangeError("orders-0", 3, 7, 57)) == (
        "offset 3 of orders-0 is out of range: the log holds offsets 7 to 57 (exclusive)"
    )


def test_refused_append_names_the_partition() -> None:
    error = OutOfOrderSequenceError("sequence is 7, expected 5", "web-events-0")
    assert str(error) == "sequence is 7, expected 5 in partition web-events-0"
    assert str(OutOfOrderSequenceError("sequence is 7")) == "sequence is 7"


def test_validation_error_shows_its_first_records_and_counts_the_others() -> None:
    wrong = tuple((index, "no key") for index in range(5))
    assert str(RecordValidationError("5 records are wrong", wrong, "web-events-0")) == (
        "5 records are wrong in partition web-events-0; record 0: no key; record 1: no key; "
        "record 2: no key; and 2 more"
    )


def test_topics_whose_configuration_is_not_known_are_named_up_to_twenty() -> None:
    text = str(errors.UnknownTopicConfigError(["orders"]))
    assert text.startswith("the configuration of topic orders is not known: brokers keep it in ")
    names = [f"t{number}" for number in range(22)]
    error = errors.UnknownTopicConfigError(names)
    assert "of topics t0, t1, t2, t3" in str(error)
    assert "t19 and 2 more is not known: brokers" in str(error)
    assert error.topics == tuple(names)
