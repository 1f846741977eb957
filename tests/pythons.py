"""``make pythons``: each Python of the matrix, as ``build/pythons/bin/python3.X``.

That is a script, which starts what the ``PATH`` or pyenv has. What is missing comes from Debian's
testing release: its packages are unpacked, not installed, and the interpreter is told to use their
C library, which is newer than this machine's. That needs debootstrap, patchelf (in the group
``release``) and root.
Debian has no free-threaded build: `FREE_THREADED` is taken from the ``PATH`` or pyenv alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.arm.root import unpack_debian

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
FREE_THREADED = "3.14t"
BUILD = Path(__file__).parents[1] / "build" / "pythons"
_SUITE = "testing"
_ASK = "import sys, sysconfig; print('%d.%d' % sys.version_info[:2], end='')"
_ASK += "; print('t' * bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"


def find(version: str) -> Path | None:
    """Return an interpreter of this machine, None if there is none that runs."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    places = [Path(each) for each in os.environ["PATH"].split(os.pathsep)]
    places += sorted(pyenv.glob(f"{version.removesuffix('t')}.*/bin"), reverse=True)
    return next(((each / name).resolve() for each in places if _is(each / name, version)), None)


def _is(program: Path, version: str) -> bool:
    if not program.is_file():
        return False
    done = subprocess.run([program, "-c", _ASK], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version  # a shim of pyenv may be there without a Python


def fetch(version: str) -> Path:
    """Unpack Debian's interpreter and return it."""
    root = BUILD / f"debian-{version}"
    shutil.rmtree(root, ignore_errors=True)
    unpack_debian(root, _SUITE, f"python{version},libpython{version}-dev")
    program = root / f"usr/bin/python{version}"
    [libc] = root.glob("usr/lib/*/libc.so.6")
    [loader] = libc.parent.glob("ld-linux-*.so.*")
    patchelf = Path(sys.executable).with_name("patchelf")
    # An rpath of the program is for what it loads later, too; a runpath would be for itself alone.
    options = ("--force-rpath", "--set-rpath", libc.parent, "--set-interpreter", loader)
    subprocess.run([patchelf, *options, program], check=True)
    return program


def main() -> int:
    """Write the scripts; the exit status is 1 if one of `VERSIONS` is missing."""
    programs = BUILD / "bin"
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir(parents=True)
    missing = []
    for version in (*VERSIONS, FREE_THREADED):
        try:
            program = find(version) or (fetch(version) if version != FREE_THREADED else None)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"{version}: {error}\n")
            program = None
        if program is None:
            missing.append(version)
            continue
        # A link would look for its library beside itself.
        script = programs / f"python{version}"
        script.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        sys.stdout.write(f"{version}: {program}\n")
    if missing:
        sys.stdout.write(f"not found: {', '.join(missing)}\n")
    return 1 if {*missing} & {*VERSIONS} else 0


if __name__ == "__main__":
    sys.exit(main())
