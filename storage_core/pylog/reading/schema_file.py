"""A schema that a user has as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pylog.errors import InvalidSchemaError
from pylog.typed.known_schemas import KnownSchema

if TYPE_CHECKING:
    import os

_LARGEST_FILE = 1 << 24
_TYPES_OF_FILES = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON", ".ddl": "JSON"}


def schema_in(path: str | os.PathLike[str], number: int | str | None) -> KnownSchema:
    """Return the schema of a file, whose type its name says; `InvalidSchemaError` if it is none."""
    file = Path(path)
    kind = _TYPES_OF_FILES.get(file.suffix.lower())
    if kind is None:
        known = ", ".join(_TYPES_OF_FILES)
        raise InvalidSchemaError(f"its name ends in {file.suffix!r}, expected {known}", file)
    try:
        with file.open("rb") as content:
            text = content.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InvalidSchemaError(f"it cannot be read: {error.strerror}", file) from error
    if len(text) > _LARGEST_FILE:
        raise InvalidSchemaError("it is larger than 16 MiB, which no schema is", file)
    try:
        return KnownSchema(number, kind, text.decode())
    except UnicodeDecodeError:
        raise InvalidSchemaError("it is not UTF-8", file) from None
