from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.native.code_image import CodeImage, LoadedImage, this_level

KEY = b"12345678"
IMAGE = CodeImage(bytes(range(200)), 16, ((32, "memcpy"), (192, "pread")))


def test_a_file_gives_back_the_image_that_it_keeps() -> None:
    assert CodeImage.from_bytes(IMAGE.to_bytes(KEY), KEY) == IMAGE


def test_an_image_of_another_key_is_not_taken() -> None:
    assert CodeImage.from_bytes(IMAGE.to_bytes(KEY), b"12345679") is None


def test_no_part_of_a_file_is_taken() -> None:
    content = IMAGE.to_bytes(KEY)
    assert [n for n in range(len(content)) if CodeImage.from_bytes(content[:n], KEY)] == []
    assert CodeImage.from_bytes(content + b"\0", KEY) is None


def test_a_file_with_a_changed_byte_is_not_taken() -> None:
    content = IMAGE.to_bytes(KEY)
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 0x20
        assert CodeImage.from_bytes(bytes(changed), KEY) is None


@given(st.binary(max_size=400))
def test_random_bytes_are_not_taken(content: bytes) -> None:
    assert CodeImage.from_bytes(content, KEY) is None


@pytest.mark.parametrize(
    "image",
    [
        CodeImage(b"\xc3" * 16, 16, ()),  # begins after its end
        CodeImage(b"\xc3" * 16, 0, ((9, "memcpy"),)),  # an address that does not fit
        CodeImage(b"\xc3" * 16, 0, ((8, "system"),)),  # a function that no kernel calls
    ],
)
def test_an_image_that_cannot_be_loaded_is_not_taken_even_if_its_checksum_is_right(
    image: CodeImage,
) -> None:
    assert CodeImage.from_bytes(image.to_bytes(KEY), KEY) is None


@pytest.mark.skipif(this_level() is None, reason="no images on this machine")
def test_memory_with_code_cannot_be_written_to() -> None:
    loaded = LoadedImage(CodeImage(b"\xc3" * 16, 4, ()))
    with open("/proc/self/maps") as maps:  # noqa: PTH123 - no file
        lines = [line.split() for line in maps]
    found = [
        permissions
        for addresses, permissions, *_ in lines
        if int(addresses.split("-")[0], 16) <= loaded.entry < int(addresses.split("-")[1], 16)
    ]
    assert found == ["r-xp"]
