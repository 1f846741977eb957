"""Kernels as machine code: compiled when pylog is built, called through pointers.

========================  ==========================================================================
`signature`               what a kernel takes and returns; arguments become one array of integers
`kernel`                  what ``@kernel`` makes: finds the code at the first call, then calls it
`library`                 the shared library that has all kernels: which one, and loading it
`checksum`                CRC-32C of one stretch of bytes; no kernel
`numba_compiler`          for builds: the one module that imports Numba
`intrinsics`              its building blocks: what kernels need and Numba does not have
========================  ==========================================================================

A library refers to nothing but itself and four functions of the C library. A kernel can neither
raise a Python exception nor allocate: both would need other symbols, and `numba_compiler` refuses
them.

Two environment variables of Numba's are heeded: ``NUMBA_DISABLE_JIT=1`` runs kernels as plain
Python, and with ``NUMBA_BOUNDSCHECK=1`` Numba, which has to be installed for that, compiles each at
its first call and runs it with every index checked.
"""
