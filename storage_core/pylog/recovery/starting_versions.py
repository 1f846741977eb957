"""Which versions of Kafka start on a node's disks, by formats and levels of features.

A version does not start where a feature is finalised at a level that it does not know, as the
controller that replays the record, or the one at which the broker registers, refuses it.

Source: FeatureControlManager.replay, ClusterControlManager.registerBroker, QuorumFeatures (Kafka
4.4); KIP-584, KIP-778, KIP-853.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError
from pylog.files.meta_properties import KRAFT_VERSIONS
from pylog.findings import kinds
from pylog.internal_topics.versions import (
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    KafkaVersion,
    metadata_release,
)
from pylog.writing.node_disks import HIGHEST_VERSION, is_new_disk, is_of_a_broker, names_in
from pylog.writing.node_metadata import (
    BOOTSTRAP_CHECKPOINT,
    problems_of_metadata,
    refused_configs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.internal_topics.metadata_image import NodeRegistration
    from pylog.reading.internal_logs import CommittedMetadata
    from pylog.recovery.metadata_copies import MetadataCopy
    from pylog.writing.node import Node

_LAST_WITH_ZOOKEEPER = "3.9"
_FIRST_WITH_DYNAMIC_QUORUMS = "3.9"


class NotStarting(NamedTuple):
    """A version that does not start, and why not."""

    version: str
    reason: str


def versions_that_do_not_start(
    node: Node,
    copy: MetadataCopy | None,
    metadata: CommittedMetadata | None,
    features: dict[str, int],
    refused: str | None = None,
) -> list[NotStarting]:
    """Return those from 3.3 on that do not start on a node's disks, with the first reason of each.

    ``features``: those that are finalised, or are to be at the first start. ``refused``: why no
    version starts on the log directories, if so.
    """
    refused = refused or _reason_by_records(node, copy, metadata, features)
    found = []
    for version in SUPPORTED_FEATURES:
        reason = refused or next(_reasons(version, node, copy, metadata, features), None)
        if reason is not None:
            found.append(NotStarting(version, reason))
    return found


def _reason_by_records(
    node: Node,
    copy: MetadataCopy | None,
    metadata: CommittedMetadata | None,
    features: dict[str, int],
) -> str | None:
    """Return why no version understands the metadata; None where they do."""
    if isinstance(node.metadata_or_error, LogStorageError):
        return str(node.metadata_or_error)
    unknown = () if metadata is None else sorted(metadata.image.unknown_types)
    if unknown:
        types = ", ".join(map(str, unknown))
        return f"the metadata has records that no version up to 4.4 knows (types {types})"
    if metadata is None and copy is not None and METADATA_VERSION not in features:
        return "no record of the metadata that can be read gives the level of metadata.version"
    return None


def release_of(registration: NodeRegistration | None) -> str | None:
    """Return the version of Kafka that a node registered with, by the features that it had."""
    if registration is None:
        return None
    _, highest = registration.features.get(METADATA_VERSION, (0, 0))
    for version, supported in SUPPORTED_FEATURES.items():
        if supported[METADATA_VERSION][1] == highest:
            return version
    return None


def _reasons(
    version: str,
    node: Node,
    copy: MetadataCopy | None,
    metadata: CommittedMetadata | None,
    features: dict[str, int],
) -> Iterator[str]:
    metas = [each for each in node.disks.metas.values() if each is not None]
    if not metas:
        yield "meta.properties is missing or cannot be read"
        return
    highest = max(each.version for each in metas)
    if highest not in KRAFT_VERSIONS and copy is None:
        if _number(version) > _number(_LAST_WITH_ZOOKEEPER):
            yield "the directory is of a broker with ZooKeeper, which Kafka 4.0 and later lack"
        return
    if highest > HIGHEST_VERSION:
        yield f"meta.properties is of version {highest}, which Kafka up to 4.4 does not know"
    yield from _reasons_by_features(version, features)
    kraft_version = 0 if metadata is None else metadata.kraft_version
    if kraft_version and _number(version) < _number(_FIRST_WITH_DYNAMIC_QUORUMS):
        yield f"kraft.version is {kraft_version}, which Kafka 3.9 or later can use"
    yield from _reasons_by_files(version, node, copy, metadata)


def _reasons_by_files(
    version: str, node: Node, copy: MetadataCopy | None, metadata: CommittedMetadata | None
) -> Iterator[str]:
    if copy is None:
        if not is_new_disk(node.disks.first, is_alone=True) or is_of_a_broker(node.disks.first):
            yield "the log of the cluster's metadata is not here, or cannot be read"
    elif version in map(str, KafkaVersion):
        kafka_version = KafkaVersion.parse(version)
        for problem in problems_of_metadata(copy.directory, node.metadata_or_error, kafka_version):
            if problem.kind in _REFUSED and problem.is_certain:
                yield problem.reason
        if metadata is not None and node.node_id in metadata.image.brokers:
            yield from refused_configs(metadata.image, kafka_version)
    elif not copy.end_offset and BOOTSTRAP_CHECKPOINT not in names_in(copy.log_directory):
        yield f"{BOOTSTRAP_CHECKPOINT} is missing: the directory is formatted by Kafka 4.4 or later"


_REFUSED = (kinds.UNUSABLE_METADATA, kinds.MISSING_METADATA_LOG)


def _reasons_by_features(version: str, features: dict[str, int]) -> Iterator[str]:
    supported = SUPPORTED_FEATURES[version]
    for name, level in sorted(features.items(), key=lambda each: each[0] != METADATA_VERSION):
        lowest, highest = supported.get(name, (0, 0))
        if lowest <= level <= highest:
            continue
        shown = f"{level} ({metadata_release(level)})" if name == METADATA_VERSION else str(level)
        able = [
            each
            for each, known in SUPPORTED_FEATURES.items()
            if known.get(name, (0, 0))[0] <= level <= known.get(name, (0, 0))[1]
        ]
        if not able:
            yield f"{name} is {shown}, which no version up to 4.4 can use"
        elif level < lowest:
            yield f"{name} is {shown}: raise it with Kafka {able[-1]} before the upgrade"
        else:
            yield f"{name} is {shown}, which Kafka {able[0]} or later can use"


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
