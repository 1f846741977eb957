"""``python -m tests.fuzz.harness TARGET [libFuzzer's arguments]``: the process that is the fuzzer.

Started by `tests.fuzz.process`, which sets what Numba reads from the environment when it is
imported. Coverage comes from Python code alone: the kernels cannot be instrumented, for Numba
compiles the bytecode that the instrumentation would change. They run with every index checked: one
that is out of bounds raises, and does not read or write what lies there.
"""

from __future__ import annotations

import pkgutil
import shlex
import sys
import tempfile
from pathlib import Path

import atheris
import numpy as np

import pylog

PROGRAM = "tests.fuzz.harness"
KERNELS = Path(pylog.__file__).parent / "kernels"


def _not_instrumented() -> list[str]:
    modules = [module.name for module in pkgutil.iter_modules([str(KERNELS)])]
    return ["pylog.kernels", *(f"pylog.kernels.{name}" for name in modules)]


def _ensure_bounds_are_checked() -> None:
    from pylog.kernels.decode_legacy import find_bad_crc  # noqa: PLC0415 - see main()

    one_too_far = np.array([101], dtype=np.int64)
    buffer = np.frombuffer(bytes(100), dtype=np.uint8)
    try:
        find_bad_crc(buffer, np.zeros(1, dtype=np.int64), one_too_far)
    except IndexError:
        return
    msg = "kernels do not check their indexes: NUMBA_BOUNDSCHECK=1 is not set, or came too late"
    raise RuntimeError(msg)


def main() -> None:
    """Fuzz until an argument of libFuzzer says that it is enough, or an input fails."""
    _, name, *arguments = sys.argv
    with atheris.instrument_imports(include=["pylog"], exclude=_not_instrumented()):
        # Nothing of pylog is loaded yet: the package itself imports its parts when they are used.
        from tests.fuzz.targets import load  # noqa: PLC0415

        target = load(name)
    _ensure_bounds_are_checked()
    file = Path(tempfile.mkdtemp()) / "input"
    for seed in target.seeds():  # compiles the kernels, which would count as a hang
        target.check(seed, file)
    # libFuzzer starts its program anew for a merge, through a shell, as this text.
    program = f"{shlex.quote(sys.executable)} -m {PROGRAM} {name}"
    atheris.Setup(
        [program, f"-max_len={target.MAX_BYTES}", *arguments],
        lambda data: target.check(data, file),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
