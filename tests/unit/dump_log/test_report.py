"""What a dump counts of each file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.batches import with_bad_crc
from tests.unit.dump_log.dumped import BATCHES, objects_of, report_of, text_of, write_log

if TYPE_CHECKING:
    from pathlib import Path


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
