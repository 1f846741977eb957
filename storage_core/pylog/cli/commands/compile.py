"""``pylog compile``: compile all kernels ahead."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import announce_compilation, write_summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@command("compile", "pylog compile --all-levels")
@options.flag(
    "--all-levels",
    help="For every level of x86-64 and not only for this machine's: for an image that runs on "
    "other machines. Takes three times as long.",
)
@options.as_json
def compile(  # noqa: A001 - the command's name
    *, all_levels: bool, as_json: bool
) -> int:
    """Compile all kernels now, for images and read-only disks.

    Kernels are the loops over bytes that pylog compiles to machine code when it first needs them,
    which takes seconds, and a minute for all. Run this when a container image or an environment is
    made: every process then finds them compiled, also one that cannot write anywhere.

    They are kept where pylog looks for them: in the directory that the environment variable
    NUMBA_CACHE_DIR names if it is set, else beside the package or, where that cannot be written, in
    the user's cache directory. Run it as the user that installed pylog, with the NUMBA_CACHE_DIR
    that the processes will have. Nobody but that user or root may be able to write to the directory
    or its parents. What is compiled already is left as it is.

    On x86-64 and 64-bit ARM; elsewhere Numba keeps what it compiles by its own means.

    Exit status: 0 all kernels are kept, 2 there is no directory to keep them in, or this is another
    platform.
    """
    start = time.monotonic()
    announce_compilation()
    try:
        kept = pylog.jobs.compile_kernels(all_levels=all_levels)
    except NotImplementedError as error:
        raise ValueError(*error.args) from None
    seconds = time.monotonic() - start
    write_summary(_document(kept), _lines(kept, seconds), as_json=as_json)
    return exit_status.SOUND


def _document(kept: Sequence[pylog.jobs.KeptCode]) -> dict[str, object]:
    return {
        "kernels": [
            {
                "kernel": each.kernel,
                "level": each.level,
                "directory": str(each.directory),
                "wasCompiled": each.was_compiled,
            }
            for each in kept
        ]
    }


def _lines(kept: Sequence[pylog.jobs.KeptCode], seconds: float) -> Iterator[str]:
    compiled = sum(each.was_compiled for each in kept)
    places = Counter((each.level, str(each.directory)) for each in kept)
    for (level, directory), count in places.items():
        yield f"{count} kernels for {level} in {directory}"
    yield f"{compiled} compiled in {seconds:.1f} s, {len(kept) - compiled} were there already"
