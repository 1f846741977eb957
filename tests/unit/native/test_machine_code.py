from __future__ import annotations

import pytest

from pylog.native.machine_code import (
    HAS_LINKER,
    CodeImage,
    UnsupportedObjectError,
    link,
    load_image,
)

only_here = pytest.mark.skipif(not HAS_LINKER, reason="linked by LLVM on this machine")


@only_here
def test_memory_with_code_cannot_be_written_to() -> None:
    loaded = load_image(CodeImage(b"\xc3" * 16, 4, ()))
    with open("/proc/self/maps") as maps:  # noqa: PTH123 - no file
        lines = [line.split() for line in maps]
    found = [
        permissions
        for addresses, permissions, *_ in lines
        if int(addresses.split("-")[0], 16) <= loaded.entry < int(addresses.split("-")[1], 16)
    ]
    assert found == ["r-xp"]


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x01\x01" + bytes(58), b"MZ" + bytes(62)])
def test_what_is_no_object_file_is_refused(content: bytes) -> None:
    with pytest.raises(UnsupportedObjectError, match="not a little-endian ELF file of 64 bits"):
        link(content)
