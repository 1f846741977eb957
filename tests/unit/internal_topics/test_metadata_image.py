"""The metadata of a cluster, put together from its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import InvalidRecordError
from tests.support.metadata_log import remove_topic_record, topic_record, write_metadata_log
from tests.unit.reading.metadata_logs import ORDERS, metadata_of, retention

if TYPE_CHECKING:
    from pathlib import Path


def test_the_last_word_on_a_property_counts_and_none_takes_it_away(tmp_path: Path) -> None:
    write_metadata_log(
        tmp_path, [topic_record("orders"), retention("1"), retention("2"), retention(None)]
    )
    assert metadata_of(tmp_path).image.configs_of(ORDERS) == {}


def test_a_deleted_topic_takes_its_properties_with_it(tmp_path: Path) -> None:
    again = bytes(range(1, 17))
    write_metadata_log(
        tmp_path,
        [
            topic_record("orders"),
            retention("1"),
            remove_topic_record(),
            topic_record("orders", again),
        ],
    )
    image = metadata_of(tmp_path).image
    assert image.configs_of(ORDERS) == {}
    assert [each.topic_id.bytes for each in image.topics] == [again]


def test_a_record_of_a_later_version_spoils_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_metadata_log(tmp_path, [topic_record("orders"), b"\x01\x63\x00\x00", retention("1")])
    found = metadata_of(tmp_path)
    assert [topic.name for topic in found.image.topics] == ["orders"]
    assert found.image.topics[0].configs == {"retention.ms": "1"}
    assert "of types that are not known here are left out: 99" in caplog.text


def test_a_later_form_of_a_known_record_is_an_error(tmp_path: Path) -> None:
    write_metadata_log(tmp_path, [b"\x01\x02\x07\x00"])
    with pytest.raises(InvalidRecordError, match="offset 1 is not understood"):
        metadata_of(tmp_path)
