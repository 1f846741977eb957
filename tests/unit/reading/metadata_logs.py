"""Metadata of clusters as tests read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.internal_topics.metadata_image import ConfigResource, ConfigResourceType
from pylog.reading.internal_logs import CLUSTER_METADATA, read_committed_metadata
from pylog.reading.log_directory import open_directory
from tests.support.metadata_log import TOPIC, config_record

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.reading.internal_logs import CommittedMetadata

ORDERS = ConfigResource(ConfigResourceType.TOPIC, "orders")


def metadata_of(log_directory: Path) -> CommittedMetadata:
    return read_committed_metadata(open_directory(log_directory)[CLUSTER_METADATA])


def retention(text: str | None) -> bytes:
    return config_record(TOPIC, "orders", "retention.ms", text)
