"""Kernels: flat loops over bytes, compiled by Numba when pylog is built.

The wheel has all of them as one shared library for each level of a kind of processor; neither Numba
nor a compiler is needed to run them. Each becomes an object file of its own, which is kept under
the content of its file and of those that it imports helpers from, so a constant imported from
another file would be frozen into stale code: kernel files import nothing of ours but the decorators
below and functions of `helpers`, and the constants they repeat are pinned by a test. Every byte is
widened to int64 before arithmetic. Kernels return counts and a status; a typed wrapper one layer up
turns those into errors.

``@kernel`` is for what Python calls. Annotations give the types, the decorator what they cannot
say: ``@kernel(writes=("positions",), tables=("headers",))``. ``@helper`` is for what kernels call,
and ``@intrinsic("copy_bytes")`` for a helper that machine code has an instruction for.

In a clone the library of this machine is in ``build/kernels``, and is made again at the first use
after a change. How all this works is in `pylog.native`, the build in `pylog.kernel_compilation`.
"""

from pylog.native.kernel import has_crc32c_instructions, helper, intrinsic, kernel

__all__ = ["has_crc32c_instructions", "helper", "intrinsic", "kernel"]
