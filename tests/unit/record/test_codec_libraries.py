"""Libraries of codecs: each may be missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pylog.record import arrow_codecs


def test_lz4_has_the_fast_compressor_and_the_levels_of_the_other() -> None:
    data = b"".join(b"%d;" % (number * number % 9_973) for number in range(10_000))
    fast, low, high = (len(arrow_codecs.compress_lz4(data, level)) for level in (None, 1, 12))
    assert high < low < fast < len(data)


@pytest.mark.parametrize("missing", [["lz4"], ["zstandard"], ["cramjam"], []])
def test_each_library_may_be_missing(missing: list[str]) -> None:
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({missing!r})); "
        "from pylog.model import CompressionType as C; "
        "from pylog.record import codec_libraries as used; "
        "from pylog.record.compression import Decompressor; "
        "from pylog.record.compressor import Compressor; "
        "d = Decompressor(); [print(bytes(d.buffer.view(*d.append(c, memoryview(bytes("
        "Compressor().compress(c, b'data' * 9, magic=2))), 2)))) for c in C]; "
        "print(*sorted({f.__module__.split('.')[-1] for f in (used.compress_snappy, "
        "used.compress_lz4, used.open_zstd_compressor) if 'arrow' in f.__module__})); "
        "print('pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    *contents, by_arrow, arrow_is_loaded = done.stdout.splitlines()
    assert contents == [repr(b"data" * 9)] * 5
    assert by_arrow == ("arrow_codecs" if missing else "")
    assert arrow_is_loaded == str(bool(missing))
