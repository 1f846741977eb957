"""Where a read starts and ends, as options say it; no Spark is running."""

from __future__ import annotations

import pytest

from pylog import OffsetSpecs, Timestamp, TopicPartition
from pyspark_pylog.options import LoadOptions


def starting(**given: str) -> OffsetSpecs:
    return LoadOptions.parse({"path": "/logs", **given}).starting


def ending(**given: str) -> OffsetSpecs:
    return LoadOptions.parse({"path": "/logs", **given}).ending


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("earliest", "earliest"),
        (" Earliest ", "earliest"),
        ('{"t":{"0":23,"1":-2}}', {("t", 0): 23, ("t", 1): -2}),
        ('{"t":{"0":23},"u":{"7":0}}', {("t", 0): 23, ("u", 7): 0}),
        ('{"t":"earliest","u":{"0":"EARLIEST"}}', {"t": -2, ("u", 0): -2}),
        ('{"t":-2,"u":5}', {"t": -2, "u": 5}),
        ('{"t":{"0":9223372036854775807}}', {("t", 0): 2**63 - 1}),
        ('{"t":{}}', {}),
        ("{}", {}),
    ],
)
def test_starting_offsets_are_a_word_or_json(value: str, meaning: object) -> None:
    assert starting(startingOffsets=value) == meaning


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("latest", "latest"),
        ('{"t":{"0":23,"1":-1}}', {("t", 0): 23, ("t", 1): -1}),
        ('{"t":"latest","u":0}', {"t": -1, "u": 0}),
    ],
)
def test_ending_offsets_are_a_word_or_json(value: str, meaning: object) -> None:
    assert ending(endingOffsets=value) == meaning


def test_without_options_a_read_goes_from_earliest_to_latest() -> None:
    assert (starting(), ending()) == ("earliest", "latest")


@pytest.mark.parametrize("value", ["latest", '{"t":"latest"}', '{"t":{"0":-1}}'])
def test_a_batch_read_cannot_start_at_latest(value: str) -> None:
    with pytest.raises(ValueError, match=r"holds latest \(-1\), and nothing would be read; give "):
        starting(startingOffsets=value)


@pytest.mark.parametrize("value", ["earliest", '{"t":"earliest"}', '{"t":{"0":-2}}'])
def test_a_batch_read_cannot_end_at_earliest(value: str) -> None:
    with pytest.raises(ValueError, match=r"holds earliest \(-2\).*give latest, offsets, or option"):
        ending(endingOffsets=value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("newest", "expected JSON like"),
        ("", "expected JSON like"),
        ("[1]", "expected JSON like"),
        ('{"t":{"0":-3}}', "holds -3, expected an offset"),
        ('{"t":{"0":9223372036854775808}}', "expected an offset"),
        ('{"t":{"0":1.0}}', "holds 1.0, expected an offset"),
        ('{"t":{"0":true}}', "holds True, expected an offset"),
        ('{"t":{"0":"7"}}', "holds '7', expected an offset"),
        ('{"t":{"0":null}}', "holds None, expected an offset"),
        ('{"t":{"0":NaN}}', "expected an offset"),
        ('{"t":["0"]}', "expected an offset"),
        ('{"t":{"x":1}}', "names partition 'x' of topic 't': not a number"),
        ('{"t":{"-1":1}}', "names partition '-1' of topic 't': not a number"),
        ('{"t":{"²":1}}', "not a number"),
        ('{"t":{"0":1,"0":2}}', "'0' is named twice"),
        ('{"t":{"0":1,"00":2}}', "names partition 0 of topic 't' twice"),
        ('{"t":{"0":1},"t":{"1":2}}', "'t' is named twice"),
    ],
)
def test_senseless_offsets_are_refused(value: str, message: str) -> None:
    for parse, name in ((starting, "startingOffsets"), (ending, "endingOffsets")):
        with pytest.raises(ValueError, match=name) as caught:
            parse(**{name: value})
        assert message in str(caught.value)


@pytest.mark.parametrize(
    "value",
    ["-1", "1.5", "now", "", "1_000", "\uff12", "0x10", "+5", "9223372036854775808", "1" * 5000],
)
def test_a_timestamp_is_milliseconds_since_1970(value: str) -> None:
    for parse, name in ((starting, "startingTimestamp"), (ending, "endingTimestamp")):
        at = parse(**{name: " 1700000000000 "})
        assert isinstance(at, Timestamp)
        assert at.milliseconds == 1_700_000_000_000
        with pytest.raises(ValueError, match=f"option {name} holds .*expected milliseconds"):
            parse(**{name: value})


def test_timestamps_may_be_given_by_partition_or_by_topic() -> None:
    value = '{"t":{"0":1000,"1":"2000"},"u":3000}'
    assert starting(startingOffsetsByTimestamp=value) == {
        ("t", 0): Timestamp(1000, "error"),
        ("t", 1): Timestamp(2000, "error"),
        "u": Timestamp(3000, "error"),
    }
    with pytest.raises(ValueError, match="holds True, expected milliseconds"):
        starting(startingOffsetsByTimestamp='{"t":true}')
    with pytest.raises(ValueError, match=r"holds 1\.5, expected milliseconds"):
        ending(endingOffsetsByTimestamp='{"t":1.5}')


@pytest.mark.parametrize(
    ("names", "winner"),
    [
        (("Timestamp", "OffsetsByTimestamp", "Offsets"), "Timestamp"),
        (("Timestamp", "Offsets"), "Timestamp"),
        (("OffsetsByTimestamp", "Offsets"), "OffsetsByTimestamp"),
        (("Offsets",), "Offsets"),
    ],
)
def test_the_kafka_sources_order_of_precedence_holds(names: tuple[str, ...], winner: str) -> None:
    values = {"Timestamp": "1", "OffsetsByTimestamp": '{"t":2}', "Offsets": '{"t":3}'}
    for parse, side in ((starting, "starting"), (ending, "ending")):
        given = {side + name: values[name] for name in names}
        assert parse(**given) == parse(**{side + winner: values[winner]})


@pytest.mark.parametrize(
    ("date", "meaning"),
    [
        ("2026-11-01", "2026-11-01 in UTC is 1793491200000"),
        ("2026-11-01 12:00", "2026-11-01 12:00 in UTC is 1793534400000"),
        ("2026-11-01T12:00:00+01:00", "2026-11-01T12:00:00+01:00 is 1793530800000"),
    ],
)
def test_a_date_is_refused_with_its_milliseconds(date: str, meaning: str) -> None:
    expected = f"holds '{date}', expected milliseconds since 1970 (0 or more); {meaning}"
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        starting(startingTimestamp=date)
    assert str(caught.value) == f"option startingTimestamp {expected}"
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        ending(endingOffsetsByTimestamp=f'{{"t":{{"0":"{date}"}}}}')
    assert str(caught.value) == f"option endingOffsetsByTimestamp {expected}"


@pytest.mark.parametrize("text", ["yesterday", "1950-01-01", "2026-13-01"])
def test_what_is_neither_milliseconds_nor_a_date_after_1970_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected milliseconds since 1970 \(0 or more\)$"):
        starting(startingTimestamp=text)


def test_a_broken_position_is_refused_also_where_another_one_has_precedence() -> None:
    with pytest.raises(ValueError, match="startingOffsets"):
        starting(startingTimestamp="1", startingOffsets="broken")


def test_the_strategy_is_about_the_start_alone() -> None:
    option = "startingOffsetsByTimestampStrategy"
    assert starting(startingTimestamp="1") == Timestamp(1, "error")
    assert starting(startingTimestamp="1", **{option: " LATEST "}) == Timestamp(1, "latest")
    assert ending(endingTimestamp="1") == Timestamp(1, "latest")
    with pytest.raises(ValueError, match=f"option {option} is 'never', expected error or latest"):
        starting(**{option: "never"})


def test_partitions_are_named_by_the_library_s_value() -> None:
    positions = starting(startingOffsets='{"t":{"0":5}}')
    assert isinstance(positions, dict)
    assert [type(key) for key in positions] == [TopicPartition]
