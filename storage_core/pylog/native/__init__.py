"""Kernels as machine code: compiled once, kept in a file, called through a pointer.

Numba takes longer to import than most commands take to run, and LLVM by itself is a third of what
NumPy and Arrow take together. A process whose kernels are kept imports neither:

========================  ==========================================================================
`signature`               what a kernel takes and returns; arguments become one array of integers
`kernel`                  what ``@kernel`` makes: finds the code at the first call, then calls it
`kernel_cache`            where code is kept, under which key, and whether a file can be trusted
`machine_code`            LLVM's object file to an image (sections joined, references resolved), and
                          that to executable memory
`numba_compiler`          the one module that imports Numba
`intrinsics`              its building blocks: what kernels need and Numba does not have
`checksum`                CRC-32C, by the fastest way there is; no kernel
========================  ==========================================================================

An image is position-independent code that refers to nothing but itself and four functions of the C
library. It can neither raise a Python exception nor allocate: both would need symbols or absolute
addresses, and `machine_code` refuses them.

Three environment variables of Numba's are heeded: ``NUMBA_CACHE_DIR`` says where code is kept,
``NUMBA_DISABLE_JIT=1`` runs kernels as plain Python, and with ``NUMBA_BOUNDSCHECK=1`` Numba runs
them with every index checked. Numba itself also runs them, and keeps them by its own means, where
images do not exist: elsewhere than on Linux on x86-64.
"""
