"""Fuzzers: bytes that nobody thought of, against everything that reads bytes from disk.

A target (`tests.fuzz.targets`) is a function of bytes that fails where ``pylog`` does anything but
answer rightly or raise one of its own errors. ``python -m tests.fuzz`` lets libFuzzer look for such
bytes, guided by the coverage of ``pylog``'s Python code; `test_fuzz` checks the targets with the
inputs that are kept.

The fuzzer is atheris. It has wheels for CPython 3.11 to 3.14 on Linux, x86-64; elsewhere it is not
installed, and only the kept inputs are checked.
"""
