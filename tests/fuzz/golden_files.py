"""Files of the golden archives, as seeds."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

from tests.support.golden import archive_path, golden_cases

if TYPE_CHECKING:
    from collections.abc import Iterator


def golden_files(*name_ends: str, max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and head of every different file of all cases whose name ends like that.

    Read from the archives: unpacked, they would have to be watched (see `tests.support.golden`).
    """
    seen = set()
    for case_id in golden_cases():
        with tarfile.open(archive_path(case_id), "r:xz") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.name.endswith(name_ends) else None
                data = stream.read(max_bytes) if stream else b""
                if data and data not in seen:
                    seen.add(data)
                    yield member.name.rpartition("/")[2], data
