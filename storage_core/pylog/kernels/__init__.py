"""Numba kernels: flat loops over bytes, each file self-contained.

Numba's on-disk cache is keyed on one file's content, so a constant or helper imported from another
file would be frozen into stale machine code: kernel files import nothing of ours but the two
decorators below, and the constants they repeat are pinned by a test. Every byte is widened to int64
before arithmetic. Kernels return counts and a status; a typed wrapper one layer up turns those into
errors.

The first run after an installation compiles what it needs, which takes seconds. Compiled kernels
are kept beside the source, in ``__pycache__``; where that cannot be written, in the user's cache
directory (``~/.cache/numba`` on Linux); the environment variable ``NUMBA_CACHE_DIR`` goes before
both. Where none of these can be written, kernels are compiled in every process.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba

if TYPE_CHECKING:
    from collections.abc import Callable


def _probe() -> None:
    """Never run: a function to ask Numba about."""


def _can_cache() -> bool:
    """Return whether there is a directory for compiled kernels.

    Without one, Numba refuses to import a kernel that is to be cached. It also takes ``~`` for a
    name where the home directory is not known, and would make a directory of that name wherever
    we happen to stand, which may be the directory that is read.
    """
    is_told = bool(numba.config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME"))
    if not is_told and os.path.expanduser("~") == "~":  # noqa: PTH111 - expanduser() raises
        beside = Path(__file__).parent / "__pycache__"
        return beside.is_dir() and os.access(beside, os.W_OK)
    try:
        numba.njit(cache=True)(_probe)
    except RuntimeError:  # "cannot cache function …: no locator available"
        return False
    return True


# Wrappers for callers that we do not have are a sixth of what the first run compiles.
_OPTIONS: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
_CAN_CACHE = _can_cache()
_njit: Any = numba.njit  # whose types know only some of its options


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` at its first call, or load it from the cache."""
    return _njit(cache=_CAN_CACHE, **_OPTIONS)(function)


def helper(function: Callable[..., Any]) -> Any:
    """Compile ``function`` into the kernels of the same file; Python cannot call it.

    Not cached: a kernel in the cache has its helpers inside.
    """
    return _njit(no_cpython_wrapper=True, **_OPTIONS)(function)
