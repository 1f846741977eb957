from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pylog.writing.writer_schema import WriterSchema


def test_a_path_is_a_file_and_latest_is_what_is_registered() -> None:
    assert WriterSchema.of("order.avsc") == WriterSchema(schema="order.avsc")
    assert WriterSchema.of(Path("order.avsc")) == WriterSchema(schema=Path("order.avsc"))
    assert WriterSchema.of("latest") == WriterSchema()
    assert WriterSchema.of(None) is None


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"framing": "none"}, "framing is 'none', expected 'prefix' or 'header'"),
        ({"compatibility": "backward"}, "compatibility is 'backward', expected one of NONE, BACK"),
        ({"version": "union"}, "version is 'union', expected a number or 'latest'"),
        ({"schema": "a.avsc", "version": 3}, "give a file with a schema, or a version"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        WriterSchema(**wrong)
