"""``make arm-root``: a Debian for 64-bit ARM in ``build/arm``, whose Python runs here by qemu.

Needs debootstrap and qemu-user-static (Debian's packages of these names) and root, since packages
are unpacked with their owners. Nothing of it is started by the kernel itself: each program is an
argument of qemu's.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.release_check.wheels import build_wheel

REPOSITORY = Path(__file__).parents[2]
BUILD = REPOSITORY / "build" / "arm"
DEBIAN = BUILD / "debian"
SITE = BUILD / "site"
"""What a user has: pylog, and what it needs in the versions of the lock file."""
TOOLS = BUILD / "tools"
"""What tests need."""

_SUITE = "bookworm"
_PYTHON = "3.11"
_QEMU = "qemu-aarch64-static"
_PLATFORM = "aarch64-manylinux_2_28"
_PROGRAMS = ("debootstrap", _QEMU)
_TOOLS = (
    "pytest",
    "pytest-xdist",
    "pytest-benchmark",
    "hypothesis",
    "kafka-python",
    "protobuf",
    "pandas",  # which Arrow needs to give nanoseconds to Python
)


def is_there() -> bool:
    """Return whether ``make arm-root`` has been run, and what runs it is installed."""
    return TOOLS.is_dir() and shutil.which(_QEMU) is not None


def python(*arguments: str) -> list[str]:
    """Return the command that runs ARM's Python."""
    return [_QEMU, "-L", str(DEBIAN), str(DEBIAN / f"usr/bin/python{_PYTHON}"), *arguments]


def unpack_pylog() -> None:
    """Put the wheel of this tree into the site."""
    wheel = build_wheel("linux-aarch64", BUILD / "wheel")
    for folder in SITE.glob("py*log*"):
        shutil.rmtree(folder)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(SITE)


def fetch() -> None:
    """Make all of it anew."""
    missing = [each for each in _PROGRAMS if shutil.which(each) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)} (apt install debootstrap qemu-user-static)")
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    # An index has no wheels of crcmod.
    unpack_debian(DEBIAN, _SUITE, "python3,python3-crcmod,libstdc++6", "--arch=arm64")
    _install(SITE, "--require-hashes", "-r", str(REPOSITORY / "requirements/core.lock"))
    _install(TOOLS, "-c", str(_without_hashes("dev.lock")), *_TOOLS)
    for folder in TOOLS.glob("numpy*"):  # those of the site
        shutil.rmtree(folder)


def unpack_debian(where: Path, suite: str, packages: str, *options: str) -> None:
    """Unpack a release's base and ``packages``, whose names have commas between them."""
    command = ["debootstrap", "--foreign", "--variant=minbase", *options]
    subprocess.run([*command, f"--include={packages}", suite, str(where)], check=True)
    # The second stage would configure the packages, by programs that cannot run here as they are.
    for package in (where / "var/cache/apt/archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(where)], check=True)
        package.unlink()


def _install(target: Path, *what: str) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    machine = ("--python-platform", _PLATFORM, "--python-version", _PYTHON)
    options = ("--quiet", "--only-binary", ":all:", "--target", str(target))
    command = [uv, "pip", "install", *machine, *options, *what]
    subprocess.run(command, check=True)


def _without_hashes(name: str) -> Path:
    lines = (REPOSITORY / "requirements" / name).read_text("utf-8").splitlines()
    pins = [line.removesuffix(" \\") for line in lines if line[:1].isalnum()]
    path = BUILD / "constraints.txt"
    path.write_text("\n".join(pins) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    fetch()
