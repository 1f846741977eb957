"""All messages of the wire against the schemas in Kafka's own classes, version by version."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pylog.server.messages import APIS
from tests.support.java_source import java_command
from tests.support.short_lived_java import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.internal_topics.schema import Field, Message

pytestmark = pytest.mark.broker

SOURCE = Path(__file__).parent / "java" / "MessageSchemas.java"
VERSION = "4.4.0"
MESSAGES = {
    message.name: message for api in APIS.values() for message in (api.request, api.response)
}
_SECONDS = 120
_TYPES = {"bool": "BOOLEAN"}
_WITH_COMPACT_LENGTH = ("string", "bytes", "records")


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _lines(
    fields: tuple[Field, ...], version: int, indent: str, *, is_flexible: bool
) -> Iterator[str]:
    """Yield the fields as Kafka's classes list them: tagged ones after a line of their own."""
    present = [each for each in fields if version in each.versions]
    untagged = [each for each in present if each.tag is None]
    for each in untagged:
        yield from _field_lines(each, version, indent, "", is_flexible=is_flexible)
    if is_flexible:
        yield f"{indent}_tags"
        for each in sorted(set(present) - set(untagged), key=lambda each: each.tag or 0):
            yield from _field_lines(each, version, indent, f" tag={each.tag}", is_flexible=True)


def _field_lines(
    field: Field, version: int, indent: str, tag: str, *, is_flexible: bool
) -> Iterator[str]:
    compact = "COMPACT_" if is_flexible else ""
    nullable = "NULLABLE_" if version in field.nullable_versions else ""
    prefix = ""
    if field.is_array:
        prefix, nullable = f"{compact}{nullable}ARRAY of ", ""
    if field.fields:
        yield f"{indent}{_snake_case(field.name)} {prefix}{nullable}STRUCT{tag}"
        yield from _lines(field.fields, version, f"{indent}  ", is_flexible=is_flexible)
        return
    kind = _TYPES.get(field.type, field.type.upper())
    if field.type in _WITH_COMPACT_LENGTH:
        kind = f"{compact}{nullable}{kind}"
    yield f"{indent}{_snake_case(field.name)} {prefix}{kind}{tag}"


def _text(message: Message) -> str:
    lines = []
    for version in message.versions:
        lines.append(f"{message.name} {version}")
        is_flexible = version in message.flexible_versions
        lines += _lines(message.fields, version, "  ", is_flexible=is_flexible)
    return "\n".join(lines)


@pytest.fixture(scope="module")
def kafkas(kafka_is_here: None) -> dict[str, str]:
    """Return what Kafka's classes say of each message."""
    done = subprocess.run(
        [*java_command(SOURCE, SHORT_LIVED, version=VERSION), *MESSAGES],
        check=True,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    texts: dict[str, str] = {}
    for line in done.stdout.splitlines():
        if not line.startswith(" "):
            name = line.split()[0]
        texts[name] = f"{texts[name]}\n{line}" if name in texts else line
    return texts


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_as_kafkas_class_has_it(kafkas: dict[str, str], name: str) -> None:
    assert _text(MESSAGES[name]) == kafkas[name]
