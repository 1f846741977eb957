"""``make wheels``: a wheel for each platform, all of them built on this machine.

Nothing is fetched: the versions are those of the lock files, so the same sources give the same
bytes.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pylog.kernel_compilation import PLATFORMS
from tests.release_check.fresh_environment import run

ROOT = Path(__file__).parents[2]
_VARIABLE = "PYLOG_WHEEL_PLATFORM"  # see hatch_build.py


def build_wheel(platform: str, directory: Path, source: Path = ROOT) -> Path:
    """Build the wheel of a platform; return its path.

    Raises
    ------
    StepFailedError
        The build failed.
    """
    folder = directory / platform
    shutil.rmtree(folder, ignore_errors=True)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        folder,
        source,
    ]
    run(command, source, {**os.environ, _VARIABLE: platform})
    [built] = folder.glob("*.whl")
    wheel = directory / built.name
    built.replace(wheel)
    folder.rmdir()
    return wheel


def main(directory: Path) -> None:
    """Build all of them."""
    shutil.rmtree(directory, ignore_errors=True)
    for platform in PLATFORMS:
        sys.stdout.write(f"{build_wheel(platform, directory)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
