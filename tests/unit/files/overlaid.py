"""A directory under an overlay."""

from __future__ import annotations

from pylog.files import disk
from pylog.files.storage import open_file


def tree(path: str) -> dict[str, bytes | None]:
    """Return what lies below a directory: the content of files, None for directories."""
    found: dict[str, bytes | None] = {}
    with disk.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found[entry.name] = None
                for name, content in tree(entry.path).items():
                    found[f"{entry.name}/{name}"] = content
            else:
                with open_file(entry.path) as file:
                    assert entry.stat().st_size == file.size()
                    found[entry.name] = file.read_at(0, file.size() + 1)
    return found
