"""Records that are searched, and the offsets that are found."""

from __future__ import annotations

from typing import Any


def offsets_of(scan: Any) -> list[int]:  # noqa: ANN401 - a scan or a search
    batches = scan.to_batches() if hasattr(scan, "to_batches") else scan
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]
