r"""``meta.properties``: whose log directory this is.

A Java properties file, in ISO 8859-1, keys in any order; brokers write a ``#`` line and a date
line first::

    #
    #Sat Nov 21 00:12:06 UTC 2026
    node.id=1
    directory.id=Igo74ZAZCxWJ1lxdTzs-vQ
    version=1
    cluster.id=qM6VaBEQIIV4rb6KS_2csw

``version`` (0 if missing)
    0: ZooKeeper brokers, ``broker.id`` and ``cluster.id`` may be there. 1: KRaft, ``node.id`` and
    ``cluster.id`` must be. 2: KRaft, and the cluster's metadata has its id (KIP-1262).
``directory.id``
    A UUID in base64url, since 3.7; optional in both versions.

Source: MetaProperties, MetaPropertiesVersion (KIP-631, KIP-858; Kafka 3.9 and 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptCheckpointError
from pylog.files.checkpoint_file import read_text_file
from pylog.files.java_numbers import parse_integer
from pylog.files.java_properties import ENCODING, parse_java_properties
from pylog.files.partition_metadata import parse_uuid

if TYPE_CHECKING:
    import os
    import uuid


_STRIPPED = "".join(map(chr, range(ord(" ") + 1)))  # as Java's trim
_VERSION_ZOOKEEPER = 0
_VERSION_KRAFT = 1
KRAFT_VERSIONS = (_VERSION_KRAFT, 2)


class MetaProperties(NamedTuple):
    """Content of a ``meta.properties`` file.

    ``node_id`` is ``node.id`` of version 1 and ``broker.id`` of version 0. What the file does not
    say is None.
    """

    version: int
    node_id: int | None
    cluster_id: str | None
    directory_id: uuid.UUID | None

    @property
    def is_empty(self) -> bool:
        """Whether the file names no node, no cluster and no directory."""
        return self.node_id is None and self.cluster_id is None and self.directory_id is None


def read_meta_properties(path: str | os.PathLike[str]) -> MetaProperties:
    """Return the content of a ``meta.properties`` file."""
    text = read_text_file(path, ENCODING)
    try:
        properties = parse_java_properties(text)
        return _meta_properties({key: each.value for key, each in properties.items()})
    except ValueError as error:
        reason = f"meta.properties is malformed: {error}"
        raise CorruptCheckpointError(reason, path) from error


def _meta_properties(properties: dict[str, str]) -> MetaProperties:
    # Of all values, Kafka strips the version alone.
    version = parse_integer(properties.get("version", "0").strip(_STRIPPED), 16)
    if version not in {_VERSION_ZOOKEEPER, *KRAFT_VERSIONS}:
        msg = f"version {version} is unknown, expected 0, 1 or 2"
        raise ValueError(msg)
    node_id_key = "node.id" if version in KRAFT_VERSIONS else "broker.id"
    required = {_VERSION_KRAFT: (node_id_key, "cluster.id"), 2: (node_id_key,)}
    for key in required.get(version, ()):
        if key not in properties:
            msg = f"version {version} requires {key}, which is missing"
            raise ValueError(msg)
    node_id = properties.get(node_id_key)
    directory_id = properties.get("directory.id")
    return MetaProperties(
        version,
        None if node_id is None else parse_integer(node_id, 32),
        properties.get("cluster.id"),
        None if directory_id is None else parse_uuid(directory_id),
    )
