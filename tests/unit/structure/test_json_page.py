"""The page about JSON: made of what the commands print, and what it shows by hand is right, too."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pylog
from pylog.reading.coordinators import StaleState
from pylog.results import (
    RegistryProblem,
    SchemaListing,
    SchemaReference,
    SchemaUse,
    SharePartition,
    StoredSchema,
    SubjectSettings,
)
from tests.structure.json_page import PAGE

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / PAGE).read_text("utf-8")


def blocks(heading: str) -> list[dict[str, object]]:
    """Return the JSON of the blocks below a heading, or below a line that names a command."""
    begin = rf"(?:^## {heading}\n|^`{heading}`:\n)"
    [section] = re.findall(rf"{begin}(.*?)(?=^## |^`pylog|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    found = re.findall(r"^```json\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [json.loads(block) for block in found]


def test_every_block_is_json_and_every_document_begins_with_its_version() -> None:
    for heading in ("pylog ls", "pylog doctor", "pylog stats", "pylog groups", "pylog topics"):
        assert next(iter(blocks(heading)[0].items())) == ("schemaVersion", 1), heading


def test_what_is_shown_of_share_groups_has_the_members_that_they_have() -> None:
    _, partition, stale = blocks("pylog groups")
    for shown, kind in ((partition, SharePartition), (stale, StaleState)):
        fields = getattr(kind, "_fields", None) or tuple(kind.__dataclass_fields__)
        names = {pylog.jobs.json_name(each) for each in fields} | {"lag"} & set(shown)
        flat = names - {"topicPartition", "partition", "topic"} <= set(shown)
        assert flat, (names, shown)


def test_what_is_shown_of_schemas_has_the_members_that_they_have() -> None:
    ((version, *members),) = ([*each.items()] for each in blocks("pylog schemas"))
    assert version == ("schemaVersion", 1)
    shown: dict[str, Any] = dict(members)
    expected: dict[Any, dict[str, Any]] = {
        SchemaListing: shown,
        StoredSchema: shown["schemas"][0],
        SchemaReference: shown["schemas"][0]["references"][0],
        SubjectSettings: shown["settings"][0],
        RegistryProblem: shown["problems"][0],
        SchemaUse: shown["usage"][0],
    }
    for kind, one in expected.items():
        assert [pylog.jobs.json_name(each) for each in kind.__dataclass_fields__] == [*one]
