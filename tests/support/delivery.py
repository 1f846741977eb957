"""The two ways in which pylog reaches the Python workers of a cluster."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One way.

    Attributes
    ----------
    name
        "wheel" or "py-files".
    python
        The Python of driver and workers. It goes into the environment of ``spark-submit``: property
        ``spark.pyspark.python`` would leave the search for data sources, and planning, to the
        ``python3`` on the PATH.
    options
        What ``spark-submit`` gets.
    place
        A part of the path under which driver and workers then import `pylog`.
    """

    name: str
    python: Path
    options: tuple[str, ...]
    place: str


def build_wheel(directory: Path) -> Path:
    """Build the wheel of this tree; return its file in ``directory``."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    (wheel,) = directory.glob("*.whl")
    return wheel


def deliveries(wheel: Path, directory: Path) -> tuple[Delivery, Delivery]:
    """Make an environment for each way, and return what to submit with.

    A user's workers have an environment into which ``pip install pyspark-pylog`` put the package
    with its dependencies, or the dependencies alone. The environments made here see the
    dependencies in the one that runs this, so that nothing is downloaded.

    Parameters
    ----------
    wheel
        Of this tree.
    directory
        Where environments and archive go. Made anew.
    """
    shutil.rmtree(directory, ignore_errors=True)
    with_wheel = _environment(directory / "with-wheel")
    _install(wheel, with_wheel)
    bare = _environment(directory / "dependencies-alone")
    # A wheel is a zip file; Spark puts files on the path of workers by the end of their names.
    archive = shutil.copy(wheel, directory / "pylog.zip")
    return (
        Delivery("wheel", _python(with_wheel), (), str(with_wheel)),
        Delivery("py-files", _python(bare), ("--py-files", str(archive)), "pylog.zip"),
    )


def _environment(directory: Path) -> Path:
    """Make a virtual environment with the dependencies, but without pylog."""
    venv.create(directory, symlinks=True)
    # Directories that a .pth file names get no look for further .pth files: an editable
    # installation of pylog, which is one, is not found through them.
    paths = [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]
    (_site_packages(directory) / "dependencies.pth").write_text("\n".join(paths) + "\n")
    return directory


def _install(wheel: Path, environment: Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    offline = ("--no-deps", "--no-index", "--ignore-installed")
    target = ("--target", str(_site_packages(environment)))
    subprocess.run([*command, *offline, *target, str(wheel)], check=True)


def _python(environment: Path) -> Path:
    return environment / "bin" / "python"


def _site_packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found
