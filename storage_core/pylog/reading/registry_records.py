"""Reads the partitions of a registry's topic, ``_schemas`` by default."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pylog.internal_topics.registry_state import RegistryState
from pylog.reading.damage import DamageReport, ReadMode
from pylog.reading.view_batches import view_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.internal_topics.registry_state import StoredSchema
    from pylog.reading.damage import DamagedRange
    from pylog.reading.log_view import LogView

_COLUMNS = ("key", "value", "offset", "timestamp")
_MOST_KEPT = 4
_kept: dict[tuple[object, ...], list[StoredSchema]] = {}  # by the state of a registry's files


def is_registry_url(registry: object) -> bool:
    """Return whether a registry that runs is meant, and not a directory with its topic."""
    return isinstance(registry, str) and registry.startswith(("http://", "https://"))


def stored_schemas(views: Sequence[LogView]) -> list[StoredSchema]:
    """Return the schemas of some partitions; damage is left out.

    Those of the last few registries are kept as long as no file has changed: who follows records,
    or reads topic by topic, does not read the registry each time.
    """
    state = _state_of_files(views)
    found = None if state is None else _kept.get(state)
    if found is None:
        found = read_registry(views, ReadMode.DROPMALFORMED)[0].schemas()
        if state is not None:
            for oldest in [*_kept][: 1 - _MOST_KEPT]:
                _kept.pop(oldest, None)
            _kept[state] = found
    return found


def _state_of_files(views: Sequence[LogView]) -> tuple[object, ...] | None:
    """Return what changes with the files of some logs; None where they are not local."""
    files = []
    for view in views:
        for segment in view.segments:
            path = segment.file_path()
            try:
                now = os.stat(path)  # noqa: PTH116 - kept as text
            except OSError:
                return None
            if now.st_size != segment.size_bytes:  # it grows; the view is of before
                return None
            files.append((path, now.st_ino, now.st_size, now.st_mtime_ns))
        files.append((view.directory.path, view.log_start_offset, 0, 0))
    return tuple(files)


def read_registry(
    views: Sequence[LogView], mode: ReadMode
) -> tuple[RegistryState, list[DamagedRange]]:
    """Return what the records of some partitions come to, and the damage that was left out."""
    state = RegistryState()
    damage: list[DamagedRange] = []
    for view in views:
        report = DamageReport()
        for batch in view_batches(view, _COLUMNS, mode, report):
            columns = (
                batch.column("offset").to_pylist(),
                batch.column("timestamp").cast("int64").to_pylist(),
                batch.column("key").to_pylist(),
                batch.column("value").to_pylist(),
            )
            for offset, timestamp, key, value in zip(*columns, strict=True):
                state.take(view.partition, offset, timestamp, key, value)
        damage += report.ranges
    state.look_at_references()
    return state, damage
