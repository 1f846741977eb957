"""The drawings of the pages, by their files."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

from tests.website.batch_drawing import batch_drawing
from tests.website.lookup_drawing import lookup_drawing
from tests.website.terminal_drawing import THEMES, session_in_terminal, terminal_drawing

if TYPE_CHECKING:
    from pathlib import Path

_ARCHIVE = "tests/golden/cases/4.3.0/internal-logdir.tar.xz"
_SEGMENT = "internal-logdir/orders-0/00000000000000000000.log"


def drawings(root: Path) -> dict[str, str]:
    """Return the drawings: SVG by its path below the project's root."""
    with tarfile.open(root / _ARCHIVE) as archive:
        segment = archive.extractfile(_SEGMENT)
        if segment is None:
            msg = f"{_SEGMENT} in {_ARCHIVE} is not a file"
            raise ValueError(msg)
        data = segment.read()
    doctor = session_in_terminal("doctor", "kafka/damaged")
    return {
        "docs/batch-bytes.svg": batch_drawing(data),
        "docs/offset-lookup.svg": lookup_drawing(),
        **{
            f"docs/doctor-{name}.svg": terminal_drawing(doctor, theme)
            for name, theme in THEMES.items()
        },
    }
