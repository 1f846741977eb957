"""How much a trigger takes: the arithmetic of Spark's `kafka` source, without Spark."""

from __future__ import annotations

import pytest

from pylog import TopicPartition
from pyspark_pylog.options import LoadOptions
from pyspark_pylog.stream_batches import TriggerDelay, limited_ends

HIGHEST = 2**63 - 1


def ends(limit: int, *ranges: tuple[int, int]) -> list[int]:
    """Return where partitions end that have offsets ``[begin, end)``."""
    partitions = [TopicPartition("t", number) for number in range(len(ranges))]
    limited = limited_ends(
        limit,
        {each: begin for each, (begin, _) in zip(partitions, ranges, strict=True)},
        {each: end for each, (_, end) in zip(partitions, ranges, strict=True)},
    )
    return [limited[each] for each in partitions]


@pytest.mark.parametrize(
    ("limit", "ranges", "expected"),
    [
        # more than there is, and as much
        (100, [(0, 10), (0, 20)], [10, 20]),
        (30, [(0, 10), (0, 20)], [10, 20]),
        # in proportion, rounded down
        (15, [(0, 10), (0, 20)], [5, 10]),
        (10, [(0, 10), (0, 20)], [3, 6]),
        (10, [(100, 110), (7, 27)], [103, 13]),
        # the cases of Spark's own suite
        (10, [(0, 101), (0, 11), (0, 1)], [8, 1, 1]),
        (10, [(8, 101), (1, 11), (1, 1)], [17, 2, 1]),
        (20, [(0, 21), (0, 11), (0, 1)], [12, 6, 1]),
        # rounded up where nothing would be left, even beyond the limit
        (10, [(0, 1), (0, 1000)], [1, 9]),
        (1, [(0, 5), (0, 5), (0, 5)], [1, 1, 1]),
        (2, [(0, 1), (0, 1), (0, 1)], [1, 1, 1]),
        # nothing new, or less than before
        (5, [(3, 3), (0, 10)], [3, 5]),
        (5, [(8, 3), (0, 10)], [3, 5]),
        (5, [(3, 3)], [3]),
        (5, [], []),
        # as large as offsets get
        (HIGHEST, [(0, 10), (5, 9)], [10, 9]),
        (HIGHEST, [(0, HIGHEST)], [HIGHEST]),
        (10, [(HIGHEST - 5, HIGHEST)], [HIGHEST]),
    ],
)
def test_a_limit_is_shared_by_partitions_in_proportion_to_what_they_have(
    limit: int, ranges: list[tuple[int, int]], expected: list[int]
) -> None:
    assert ends(limit, *ranges) == expected


def delay(least: int | None, delay_ms: int = 1000) -> TriggerDelay:
    return TriggerDelay(least, delay_ms)


def test_the_first_trigger_of_a_run_never_waits() -> None:
    assert not delay(100).is_waiting(1, 5.0)


def test_later_triggers_wait_for_enough_or_for_the_delay() -> None:
    waiting = delay(100)
    steps = [
        (0, 1, False),
        (10, 99, True),
        (20, 100, False),
        (1019, 99, True),
        (1020, 99, False),
        (1030, 99, True),
        (2020, 0, False),
    ]
    for now_ms, new_offsets, expected in steps:
        assert waiting.is_waiting(new_offsets, now_ms) == expected, now_ms


def test_nothing_waits_without_a_least_number() -> None:
    waiting = delay(None)
    assert not any(waiting.is_waiting(0, now_ms) for now_ms in (0, 1, 2))


def parse(**given: str) -> LoadOptions:
    return LoadOptions.parse({"path": "/logs", **given}, is_stream=True)


@pytest.mark.parametrize(
    ("option", "value", "field", "meaning"),
    [
        ("maxOffsetsPerTrigger", "7", "max_offsets_per_trigger", 7),
        ("minOffsetsPerTrigger", "7", "min_offsets_per_trigger", 7),
        ("maxBytesPerTrigger", "1g", "max_bytes_per_trigger", 1 << 30),
    ],
)
def test_limits_come_from_options(option: str, value: str, field: str, meaning: int) -> None:
    assert not parse().is_limited
    assert parse(**{option: value}).is_limited
    assert getattr(parse(**{option: value}), field) == meaning
    assert parse(minOffsetsPerTrigger="7", maxTriggerDelay="5m").max_trigger_delay == 300_000
    # Spark's delayBatch compares with >=: at 0 no trigger waits.
    assert parse(minOffsetsPerTrigger="7", maxTriggerDelay="0ms").max_trigger_delay == 0
    assert parse(minOffsetsPerTrigger="7", maxOffsetsPerTrigger="7").is_limited


def test_the_delay_is_15_minutes_by_default() -> None:
    assert parse().max_trigger_delay == 900_000


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"maxoffsetspertrigger": "0"}, "option maxOffsetsPerTrigger is '0', expected a number of"),
        ({"minoffsetspertrigger": "x"}, "option minOffsetsPerTrigger is 'x', expected a number of"),
        ({"maxtriggerdelay": "15"}, "option maxTriggerDelay is '15', expected a duration like"),
        ({"maxbytespertrigger": "0"}, "option maxBytesPerTrigger is '0', expected a size like"),
        (
            {"minoffsetspertrigger": "8", "maxoffsetspertrigger": "7"},
            r"option minOffsetsPerTrigger \(8\) is more than option maxOffsetsPerTrigger \(7\)",
        ),
    ],
)
def test_senseless_limits_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse(**given)
