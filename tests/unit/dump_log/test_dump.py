"""What a dump prints, beyond what Kafka's tool was asked about: options, ranges, JSON, damage."""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING, Any, Literal

import pytest

import pylog
from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from tests.support.batches import (
    COMMIT,
    Built,
    Stored,
    batch_v2,
    empty_batch_v2,
    joined,
    marker,
    message,
    message_set,
    plain_records,
    with_bad_crc,
    wrapper_of,
)
from tests.support.codecs import compress
from tests.support.damage import with_bytes, with_size
from tests.support.log_files import (
    offset_index_bytes,
    segment_path,
    time_index_bytes,
    write_partition,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BATCHES = [
    batch_v2(plain_records(0, 5, timestamp=100)),
    batch_v2(plain_records(5, 5, timestamp=200), codec="lz4"),
    marker(10, COMMIT, timestamp=300, coordinator_epoch=4),
    batch_v2(plain_records(11, 2, timestamp=400)),
]


def text_of(*paths: Path, **options: Any) -> list[str]:  # noqa: ANN401 - those of dump
    dumped = pylog.dump(*paths, **options)
    return b"".join(map(bytes, dumped)).decode().split("\n")[:-1]


def objects_of(*paths: Path, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    return [json.loads(line) for line in text_of(*paths, output="jsonl", **options)]


def report_of(path: Path, **options: Any) -> pylog.results.FileReport:  # noqa: ANN401
    dumped = pylog.dump(path, **options)
    for _ in dumped:
        pass
    (report,) = dumped.reports
    return report


def write_log(directory: Path, batches: Sequence[Built], tail: bytes = b"") -> Path:
    path = segment_path(directory, batches[0].base_offset if batches else 0)
    path.write_bytes(joined(batches) + tail)
    return path


@pytest.mark.parametrize("output", ["text", "jsonl"])
@pytest.mark.parametrize("version", ["3.9", "4.3"])
@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("values", ["base64", "text"])
def test_every_name_in_the_text_of_a_line_is_known(
    tmp_path: Path,
    output: Literal["text", "jsonl"],
    version: str,
    values: Literal["base64", "text"],
    *,
    skips: bool,
) -> None:
    path = write_partition(tmp_path / "t-0", {0: BATCHES})
    for decoder in (None, "offsets"):
        dumped = pylog.dump(
            path,
            print_data_log=True,
            decoder=decoder,
            output=output,
            kafka_version=version,
            values=values,
            skip_record_metadata=skips,
        )
        assert b"".join(map(bytes, dumped))


def test_batches_and_records_have_a_line_each(tmp_path: Path) -> None:
    record = Stored(7, 1234, b"k", "é\n".encode(), (("h", b""), ("i", None)))
    built = batch_v2([record], producer_id=3, producer_epoch=2, base_sequence=9, leader_epoch=5)
    path = write_log(tmp_path, [built])
    batch = (
        "baseOffset: 7 lastOffset: 7 count: 1 baseSequence: 9 lastSequence: 9 producerId: 3 "
        "producerEpoch: 2 partitionLeaderEpoch: 5 isTransactional: false isControl: false "
        f"deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1234 size: {len(built.data)} "
        f"magic: 2 compresscodec: none crc: {int.from_bytes(built.data[17:21], 'big')} "
        "isvalid: true"
    )
    metadata = "| offset: 7 CreateTime: 1234 keySize: 1 valueSize: 3 sequence: 9 headerKeys: [h,i]"
    head = [f"Dumping {path}", "Log starting offset: 7", batch]
    assert text_of(path) == head
    assert text_of(path, deep_iteration=True) == [*head, metadata]
    assert text_of(path, print_data_log=True) == [*head, f"{metadata} key: k payload: é", ""]


@pytest.mark.parametrize(
    ("version", "end", "payload"), [("4.3", "", "| payload: v"), ("4.2", "}", " payload: v")]
)
def test_versions_before_4_3_have_a_brace_and_no_bar(
    tmp_path: Path, version: str, end: str, payload: str
) -> None:
    built = message(Stored(0, 5, None, b"v"), magic=1)
    path = write_log(tmp_path, [built])
    crc = int.from_bytes(built.data[12:16], "big")
    lines = text_of(path, deep_iteration=True, kafka_version=version)
    assert lines[3] == (
        f"| offset: 0 CreateTime: 5 keySize: -1 valueSize: 1 isValid: true crc: {crc}{end}"
    )
    options = {"print_data_log": True, "skip_record_metadata": True, "kafka_version": version}
    assert text_of(path, **options)[3] == payload


def test_max_bytes_ends_between_batches_and_tells_of_nothing_left(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES, tail=bytes(5))
    first = len(BATCHES[0].data)
    assert len(text_of(path)) == 2 + len(BATCHES) + 1
    assert text_of(path)[-1] == f"Found 5 invalid bytes at the end of {path.name}"
    for max_bytes, batches in ((first - 1, 0), (first, 1), (first + 30, 1)):
        assert len(text_of(path, max_bytes=max_bytes)) == 2 + batches


def test_an_index_entry_that_points_to_another_batch_is_reported(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    at = len(BATCHES[0].data)
    index = path.with_suffix(".index")
    index.write_bytes(offset_index_bytes([(8, at), (10, at + 1)], 0))
    assert text_of(index) == [
        f"Dumping {index}",
        f"offset: 8 position: {at}",
        f"offset: 10 position: {at + 1}",
    ]
    report = report_of(index, verify_index_only=True)
    assert report.index_mismatches == [(8, 9)]
    (error,) = report.errors
    assert error.startswith(f"{index}: entry for offset 10 leads to byte {at + 1} of the .log, ")
    assert not report.is_sound


def test_a_transaction_index_of_terabytes_is_an_error(tmp_path: Path) -> None:
    path = segment_path(write_log(tmp_path, BATCHES).parent, 0, ".txnindex")
    path.touch()
    os.truncate(path, 3 << 40)
    report = report_of(path)
    assert report.errors == [
        f"{path}: transaction index has {3 << 40} bytes, expected at most {64 << 20}"
    ]


def test_an_index_without_its_log_is_printed_and_not_verified(tmp_path: Path) -> None:
    index = segment_path(tmp_path, 0, ".index")
    index.write_bytes(offset_index_bytes([(8, 70)], 0))
    assert text_of(index)[1] == "offset: 8 position: 70"
    (error,) = report_of(index).errors
    assert error.startswith(str(index.with_suffix(".log")))
    assert error.endswith("without it the entries could not be verified")


def test_what_a_time_index_gets_wrong_is_reported_by_kind(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    index = path.with_suffix(".timeindex")
    entries = [(104, 4), (204, 8), (200, 9), (300, 10), (299, 12), (500, 99)]
    index.write_bytes(time_index_bytes(entries, 0))
    report = report_of(index)
    assert report.timestamp_mismatches == [(200, 204), (299, 401)]
    assert report.timestamps_out_of_order == [(200, 204), (299, 300)]
    assert report.offsets_not_found == [(8, 9), (99, -1)]
    assert "The following indexed offsets are not found in the log." in report.time_index_texts(
        pylog.KafkaVersion.V4_2
    )


def test_a_sound_index_passes_the_sanity_check_and_another_does_not(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    index, times = path.with_suffix(".index"), path.with_suffix(".timeindex")
    index.write_bytes(offset_index_bytes([(9, 70)], 0))
    times.write_bytes(time_index_bytes([(9, 4)], 0))
    for each in (index, times):
        assert text_of(each, index_sanity_check=True)[1:] == [f"{each} passed sanity check."]
        each.write_bytes(each.read_bytes() + b"\0")
        (error,) = report_of(each, index_sanity_check=True).errors
        assert "not a multiple of the entry size" in error


def test_an_empty_index_is_said_to_be_empty(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    index = path.with_suffix(".index")
    index.write_bytes(b"")
    assert text_of(index) == [f"Dumping {index}", f"{index} is empty."]


def test_offsets_prints_the_batches_and_records_in_the_range_alone(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    found = objects_of(path, deep_iteration=True, start_offset=8, end_offset=11)[1:]
    assert [(each["type"], each.get("offset", each.get("baseOffset"))) for each in found] == [
        ("batch", 5),
        ("record", 8),
        ("record", 9),
        ("batch", 10),
        ("record", 10),
    ]
    assert found[0]["position"] == len(BATCHES[0].data)


def test_timestamps_are_those_of_records(tmp_path: Path) -> None:
    records = [Stored(0, 300, b"", b""), Stored(1, 100, b"", b""), Stored(2, 200, b"", b"")]
    path = write_log(tmp_path, [batch_v2(records), batch_v2(plain_records(3, 2, timestamp=500))])
    found = objects_of(path, deep_iteration=True, start_timestamp=150, end_timestamp=300)[1:]
    assert [each.get("offset") for each in found] == [None, 2]
    assert len(objects_of(path, start_timestamp=301)) == 2


def test_an_empty_batch_is_printed_if_its_offsets_are_in_the_range(tmp_path: Path) -> None:
    path = write_log(tmp_path, [empty_batch_v2(0, 9), *[batch_v2(plain_records(10, 1))]])
    for start, count in ((0, 2), (9, 2), (10, 1)):
        assert len(objects_of(path, deep_iteration=True, start_offset=start)) == 1 + count + 1


def test_json_has_keys_and_values_in_base64_or_as_text(tmp_path: Path) -> None:
    path = write_log(tmp_path, [batch_v2([Stored(0, 1, b"\xff", None), Stored(1, 1, None, b"v")])])
    first, second = objects_of(path, print_data_log=True, values="base64")[2:]
    assert base64.b64decode(first["key"]) == b"\xff"
    assert (first["payload"], second["key"]) == (None, None)
    first, second = objects_of(path, print_data_log=True)[2:]
    assert (first["key"], second["payload"]) == ({"base64": "/w=="}, "v")
    assert first["values"] == "text"


def test_json_tells_of_control_records_and_of_what_is_wrong(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES, tail=bytes(100))
    found = objects_of(path, deep_iteration=True)
    (control,) = [each for each in found if "endTxnMarker" in each]
    assert (control["offset"], control["endTxnMarker"], control["coordinatorEpoch"]) == (
        10,
        "COMMIT",
        4,
    )
    assert found[-1]["type"] == "error"
    assert "Found record size 0 smaller than minimum record overhead (14)" in found[-1]["reason"]


def test_a_wrong_checksum_is_printed_and_counted(tmp_path: Path) -> None:
    path = write_log(tmp_path, [BATCHES[0], with_bad_crc(BATCHES[1]), BATCHES[3]])
    lines = text_of(path, deep_iteration=True)
    assert [line.endswith("isvalid: false") for line in lines if line.startswith("base")] == [
        False,
        True,
        False,
    ]
    assert report_of(path).invalid_batches == 1


def test_a_batch_shorter_than_its_header_is_printed_with_fields_of_what_follows(
    tmp_path: Path,
) -> None:
    # As Kafka's tool does, which test_dump_tool asks: the header is cut after its base timestamp.
    short = with_size(BATCHES[1], 35).data[:35]
    path = write_log(tmp_path, [BATCHES[0]], short + BATCHES[1].data)
    position = len(BATCHES[0].data)
    (line,) = [line for line in text_of(path) if f"position: {position} " in line]
    assert line.startswith("baseOffset: 5 lastOffset: 9 count: ")
    assert "size: 35 magic: 2 " in line
    assert line.endswith("isvalid: false")
    assert f"position: {position + 35} " in text_of(path)[-1]
    printed = text_of(path, deep_iteration=True)
    assert printed[-1] == line
    report = report_of(path, deep_iteration=True)
    assert report.errors == [f"{path} at byte {position}: batch has 35 bytes, expected at least 61"]


def test_a_negative_magic_is_an_error_and_one_that_is_torn_is_not(tmp_path: Path) -> None:
    odd = with_bytes(BATCHES[1], 16, b"\x80").data
    path = write_log(tmp_path, [BATCHES[0]], odd)
    at = len(BATCHES[0].data)
    assert report_of(path).errors == [
        f"{path} at byte {at}: Invalid magic used in LegacyRecord: -128"
    ]
    path = write_log(tmp_path, [BATCHES[0]], odd[:-1])
    assert report_of(path).errors == []
    assert text_of(path)[-1] == f"Found {len(odd) - 1} invalid bytes at the end of {path.name}"


def test_an_inner_message_of_wrong_checksum_is_printed_as_such(tmp_path: Path) -> None:
    inner = bytearray(
        message_set([Stored(0, 5, b"k", b"a"), Stored(1, 5, b"k", b"b")], inner_magic=1)
    )
    inner[12] ^= 1
    stream = compress("gzip", bytes(inner), magic=1)
    built = wrapper_of(stream, offset=1, magic=1, codec="gzip", timestamp=5)
    path = segment_path(tmp_path, 0)
    path.write_bytes(built)
    records = text_of(path, deep_iteration=True)[3:]
    assert [" isValid: true" in line for line in records] == [False, True]


def test_a_snapshot_of_the_metadata_log_is_dumped_by_its_batches(tmp_path: Path) -> None:
    snapshot = tmp_path / f"{12:020d}-{3:010d}.checkpoint"
    bootstrap = tmp_path / "bootstrap.checkpoint"
    for path, heading in (
        (snapshot, "Snapshot end offset: 12, epoch: 3"),
        (bootstrap, "KRaft bootstrap snapshot"),
    ):
        path.write_bytes(BATCHES[0].data)
        lines = text_of(path)
        assert lines[:2] == [f"Dumping {path}", heading]
        assert lines[2].startswith("baseOffset: 0 lastOffset: 4 count: 5 ")


def test_a_directory_is_all_its_files_by_name(tmp_path: Path) -> None:
    partition = write_partition(tmp_path, {0: BATCHES[:2], 10: BATCHES[2:]})
    (partition / "leader-epoch-checkpoint").write_text("0\n0\n")
    segment_path(partition, 5, ".log.deleted").write_bytes(b"")
    names = [line for line in text_of(partition) if line.startswith("Dumping")]
    assert names == [
        f"Dumping {segment_path(partition, base, suffix)}"
        for base in (0, 10)
        for suffix in (".index", ".log", ".timeindex")
    ]
    with_range = [line for line in text_of(partition, start_offset=10) if "Dumping" in line]
    assert with_range == [f"Dumping {segment_path(partition, 10)}"]


def test_topics_and_partitions_of_a_log_directory_are_chosen_by_name(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "other-0", "__consumer_offsets-3"):
        write_partition(tmp_path, {0: BATCHES[:1]}, name=name)

    def partitions(**options: Any) -> set[str]:  # noqa: ANN401
        lines = text_of(tmp_path, **options)
        return {line.split("/")[-2] for line in lines if line.startswith("Dumping")}

    assert partitions() == {"orders-0", "orders-1", "other-0"}
    assert partitions(topics=["orders"]) == {"orders-0", "orders-1"}
    assert partitions(topics=["orders"], partitions=[1]) == {"orders-1"}
    assert partitions(topics=["__consumer_offsets"]) == {"__consumer_offsets-3"}
    with pytest.raises(UnknownTopicOrPartitionError, match="nope"):
        text_of(tmp_path, topics=["nope"])


def test_other_files_follow_one_that_cannot_be_read(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    missing = segment_path(tmp_path, 77)
    dumped = pylog.dump(missing, path)
    text = b"".join(map(bytes, dumped)).decode()
    assert text.startswith(f"Dumping {missing}\nLog starting offset: 77\nDumping {path}\n")
    assert dumped.reports[0].is_unreadable
    assert dumped.is_readable
    assert not dumped.is_sound


def test_a_path_that_leads_to_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="no such file or directory"):
        pylog.dump(tmp_path / "orders-0")


@pytest.mark.parametrize("threads", [1, 3])
def test_lines_come_in_order_whatever_the_threads(tmp_path: Path, threads: int) -> None:
    batches = [batch_v2(plain_records(n * 100, 100, value_size=2_000)) for n in range(20)]
    partition = write_partition(tmp_path, {0: batches[:10], 1000: batches[10:]})
    found = objects_of(partition, print_data_log=True, threads=threads)
    assert [each["offset"] for each in found if each["type"] == "record"] == list(range(2000))


def test_options_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    path = write_log(tmp_path, BATCHES)
    for options, reason in (
        ({"kafka_version": "0.8"}, "0.8"),
        ({"output": "xml"}, "output is 'xml', expected one of text, jsonl"),
        ({"values": "hex"}, "values is 'hex', expected one of text, base64"),
        ({"decoder": "nope"}, "nope"),
        ({"decoder": "share-group-state", "kafka_version": "3.9"}, "share group state"),
    ):
        with pytest.raises(ValueError, match=reason):
            pylog.dump(path, **options)  # type: ignore[arg-type]
