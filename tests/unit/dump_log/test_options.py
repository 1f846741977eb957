"""Options of a dump that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from tests.unit.dump_log.dumped import BATCHES, write_log

if TYPE_CHECKING:
    from pathlib import Path


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
