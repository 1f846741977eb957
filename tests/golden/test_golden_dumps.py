"""`pylog.dump` prints of golden partitions what the tool of each broker's version printed.

Of 4.4.0, 4.3.0 and 3.9.1 every line is equal. Older tools had other texts: `OLDER` states what of
their lines is compared, field by field.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import pylog
from tests.support.golden import golden_cases, golden_partitions
from tests.support.kafka_dump import dump_path, dump_text, dumped_files

if TYPE_CHECKING:
    from tests.support.golden import GoldenPartition, GoldenRoot
    from tests.support.kafka_dump import Fields

TEXTS = {"4.4.0": "4.4", "4.3.0": "4.3", "3.9.1": "3.9"}
EXACT = [each for each in golden_partitions() if each.partition("/")[0] in TEXTS]
OLDER = [each for each in golden_partitions() if each not in EXACT]
INTERNAL = {
    "__consumer_offsets": "offsets",
    "__transaction_state": "transaction-log",
    "__cluster_metadata": "cluster-metadata",
    "__share_group_state": "share-group-state",
}
DECODED = [
    each
    for each in EXACT
    if each.rpartition("/")[2].partition(":")[2].rpartition("-")[0] in INTERNAL
]
EXCEPTION = re.compile(
    r'\n\n\[stderr\] Exception in thread "main" '
    r"org\.apache\.kafka\.common\.errors\.CorruptRecordException: (.*) in file (.*)\.$",
    re.MULTILINE,
)


def names_in(text: str) -> list[str]:
    return re.findall(r"^Dumping (.*)$", text, re.MULTILINE)


def dumped(
    partition: GoldenPartition, text: str, monkeypatch: pytest.MonkeyPatch, **options: object
) -> tuple[str, list[str]]:
    """Dump the files that ``text`` is of; return what is printed, and the errors."""
    monkeypatch.chdir(partition.log_directory)
    result = pylog.dump(*names_in(text), **options)  # type: ignore[arg-type]
    printed = b"".join(bytes(lines) for lines in result).decode()
    return printed, [error for report in result.reports for error in report.errors]


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("partition_id", EXACT)
def test_a_dump_is_line_for_line_that_of_kafkas_tool(
    golden_root: GoldenRoot, partition_id: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = golden_root.partition(partition_id)
    text = dump_text(dump_path(partition))
    version = TEXTS[partition.broker]
    printed, errors = dumped(
        partition, text, monkeypatch, print_data_log=True, kafka_version=version, threads=threads
    )
    # The tool ends there with an exception, which the golden file has after what was printed.
    ended = EXCEPTION.findall(text)
    assert printed.split("\n") == EXCEPTION.sub("", text).split("\n")
    reported = [re.fullmatch(r"(.*) at byte \d+: (.*)", error) for error in errors]
    assert [match and match.group(2, 1) for match in reported] == ended


@pytest.mark.parametrize("partition_id", DECODED)
def test_internal_topics_are_decoded_as_by_kafkas_tool(
    golden_root: GoldenRoot, partition_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = golden_root.partition(partition_id)
    text = dump_text(partition.log_directory / f"dump-decoded.{partition.name}.txt.gz")
    printed, errors = dumped(
        partition,
        text,
        monkeypatch,
        decoder=INTERNAL[partition.topic],
        kafka_version=TEXTS[partition.broker],
    )
    assert printed.split("\n") == text.split("\n")
    assert not errors


# What older tools called otherwise than 4.3 does, by the name of 4.3.
RENAMED = {"payloadsize": "valueSize", "valuesize": "valueSize", "keysize": "keySize"}
# Fields that mean something else there: up to 0.11 a record's line has what is its batch's since,
# or, of a message in a wrapper, its own; 2.8 repeats the batch's fields in each record's line. Of
# producers, the time had another name up to 0.11.
NOT_COMPARED = {"isValid", "isvalid", "crc", "position", "compresscodec", "magic", "lastTimestamp"}
OPTIONAL = re.compile(r"(?:Some\(|OptionalLong\[)(-?\d+)[)\]]|None|OptionalLong\.empty")


def comparable(fields: Fields) -> Fields:
    named = {RENAMED.get(name, name): value for name, value in fields.items()}
    if "currentTxnFirstOffset" in named:
        match = OPTIONAL.fullmatch(named["currentTxnFirstOffset"])
        assert match is not None
        named["currentTxnFirstOffset"] = match[1] or "none"
    return named


def without_zero_tail(name: str, lines: list[Fields]) -> list[Fields]:
    """Leave out the zeros of a preallocated index, which tools up to 0.11 printed as entries."""
    base_offset = str(int(name.partition(".")[0]))
    is_index = name.endswith((".index", ".timeindex"))
    while is_index and len(lines) > 1 and lines[-1]["offset"] == base_offset:
        lines = lines[:-1]
    return lines


@pytest.mark.parametrize("partition_id", OLDER)
def test_of_older_tools_every_field_that_both_print_is_the_same(
    golden_root: GoldenRoot,
    partition_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    partition = golden_root.partition(partition_id)
    text = dump_text(dump_path(partition))
    printed, _ = dumped(partition, text, monkeypatch, print_data_log=True)
    theirs, ours = dumped_files(text), dumped_files(printed)
    assert theirs.keys() == ours.keys()
    for name, lines in theirs.items():
        # Tools up to 0.11 print records alone, without the bar.
        has_batches = any("isRecord" in fields for fields in lines)
        is_of_records = name.endswith(".log") and not has_batches
        own = [fields for fields in ours[name] if not is_of_records or "isRecord" in fields]
        entries = without_zero_tail(name, lines)
        assert len(own) == len(entries), name
        for fields, mine in zip(map(comparable, entries), map(comparable, own), strict=True):
            left_out = NOT_COMPARED if is_of_records or "isRecord" in fields else {"compresscodec"}
            common = (fields.keys() & mine.keys()) - left_out
            assert {"offset", "baseOffset", "timestamp", "version", "producerId"} & common, fields
            assert {key: mine[key] for key in common} == {key: fields[key] for key in common}


def test_there_are_dumps_of_all_versions() -> None:
    assert {each.partition("/")[0] for each in golden_cases()} >= set(TEXTS)
    assert len(EXACT) > 60
    assert len(DECODED) == 13
