"""Kernels: flat loops over bytes, compiled by Numba.

A compiled kernel is kept as machine code, keyed on the content of its own file and of those that it
imports helpers from, so a constant imported from another file would be frozen into stale code:
kernel files import nothing of ours but the decorators below and functions of `helpers`, and the
constants they repeat are pinned by a test. Every byte is widened to int64 before arithmetic.
Kernels return counts and a status; a typed wrapper one layer up turns those into errors.

``@kernel`` is for what Python calls. Annotations give the types, the decorator what they cannot
say: ``@kernel(writes=("positions",), tables=("headers",))``. ``@helper`` is for what kernels call,
and ``@intrinsic("copy_bytes")`` for a helper that machine code has an instruction for.

The first run after an installation compiles what it needs, which takes seconds; from then on the
code is loaded from a file, in a fraction of a millisecond, and Numba is not imported. The file lies
beside the source, in ``__pycache__``, or else in the user's cache directory (``~/.cache/pylog``, or
``pylog`` in ``$XDG_CACHE_HOME``); if the environment variable ``NUMBA_CACHE_DIR`` is set, in that
directory and no other. Since it is machine code, a directory is used only if it and all its parents
belong to the user or to root, and nobody else can write there. Where there is none, kernels are
compiled in every process. How all this works is in `pylog.native`.
"""

from pylog.native.kernel import helper, intrinsic, kernel, uses_instructions_of

__all__ = ["helper", "intrinsic", "kernel", "uses_instructions_of"]
