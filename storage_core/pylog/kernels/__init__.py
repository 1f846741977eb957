"""Numba kernels: flat loops over bytes, each file self-contained.

Numba's on-disk cache is keyed on one file's content, so a constant or helper imported from another
file would be frozen into stale machine code: kernel files import nothing of ours, and the
constants they repeat are pinned by a test. Every byte is widened to int64 before arithmetic.
Kernels return counts and a status; a typed wrapper one layer up turns those into errors.
"""
