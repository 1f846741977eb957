"""Jobs that clean logs, as tests run them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def parsed(job: Any, path: Path, *arguments: str) -> argparse.Namespace:  # noqa: ANN401 - a module
    parser = argparse.ArgumentParser()
    job.add_arguments(parser)
    return parser.parse_args([str(path), *arguments])
