from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import InvalidSchemaError
from pylog.reading.schema_file import schema_in

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.avsc", "AVRO"), ("a.PROTO", "PROTOBUF"), ("a.json", "JSON"), ("a.ddl", "JSON")],
)
def test_the_name_says_the_type(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / name).write_text("x")

    found = schema_in(tmp_path / name, 7)

    assert (found.id, found.type, found.text) == (7, kind, "x")


def test_other_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSchemaError, match=r"its name ends in '.txt', expected .avsc"):
        schema_in(tmp_path / "a.txt", None)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSchemaError, match=r"a.avsc: it cannot be read: No such file"):
        schema_in(tmp_path / "a.avsc", None)


def test_text_has_to_be_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_bytes(b"\xff")

    with pytest.raises(InvalidSchemaError, match="it is not UTF-8"):
        schema_in(tmp_path / "a.avsc", None)
