from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import pytest

from pylog.errors import InvalidRecordError
from pylog.internal_topics.control_messages import control_json, has_control_json
from pylog.internal_topics.versions import KafkaVersion
from pylog.model import ControlRecordType
from pylog.record.control_record import parse_control_record_type
from pylog.record.record_batch import RecordBatch

if TYPE_CHECKING:
    from tests.support.golden import GoldenRoot

METADATA = "__cluster_metadata-0"


def test_control_records_are_printed_as_kafkas_own_tool_prints_them(
    golden_root: GoldenRoot,
) -> None:
    case = golden_root.case("4.3.0/internal-logdir")
    dump = gzip.decompress((case / f"dump-decoded.{METADATA}.txt.gz").read_bytes()).decode()
    names = set()
    for section in re.split(r"^Dumping ", dump, flags=re.MULTILINE)[1:]:
        path = case / section.partition("\n")[0]
        if path.suffix not in (".log", ".checkpoint"):
            continue
        printed = re.findall(
            r" (LeaderChange:|SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters) ({.*})",
            section,
        )
        data = memoryview(path.read_bytes())
        found = []
        while data:
            batch = RecordBatch(data)
            data = data[batch.header.size_bytes :]
            for record in batch.records() if batch.header.is_control_batch else ():
                kind = parse_control_record_type(record.key)
                assert has_control_json(kind)
                found.append(control_json(kind, record.value or b""))
        assert found == [text for _, text in printed]
        names |= {name for name, _ in printed}
    assert len(names) >= 3


def test_the_tools_before_4_1_print_no_change_of_leaders() -> None:
    assert not has_control_json(ControlRecordType.LEADER_CHANGE, KafkaVersion.V4_0)
    assert has_control_json(ControlRecordType.LEADER_CHANGE, KafkaVersion.V4_1)
    assert has_control_json(ControlRecordType.KRAFT_VOTERS, KafkaVersion.V3_9)
    assert not has_control_json(ControlRecordType.COMMIT)


def test_a_control_record_that_is_cut_short_is_refused() -> None:
    with pytest.raises(InvalidRecordError):
        control_json(ControlRecordType.SNAPSHOT_HEADER, b"\x00\x00\x00")
