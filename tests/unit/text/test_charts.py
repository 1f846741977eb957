"""Text and numbers in pages: as people read them, and not too long."""

from __future__ import annotations

from pylog.text.charts import duration, moment, number, percent, size, text


def test_a_long_text_is_cut() -> None:
    assert text("x" * 1000) == "x" * 199 + "…"


def test_numbers_are_as_people_read_them() -> None:
    assert [size(each) for each in (0, 1023, 1024, 1536, 120 << 20, 1 << 62)] == [
        *("0\u00a0B", "1023\u00a0B", "1.0\u00a0KiB", "1.5\u00a0KiB", "120\u00a0MiB"),
        "4.0\u00a0EiB",
    ]
    assert [number(each) for each in (7, 1234567, 1.25, 330.03)] == ["7", "1,234,567", "1.2", "330"]
    assert [percent(each) for each in (0, 0.00012, 0.123, 0.9999, 1)] == [
        f"{each}\u00a0%" for each in ("0.0", "0.012", "12.3", "100", "100")
    ]
    assert [moment(each) for each in (None, 0, 2**62)] == [
        *("\u2013", "1970-01-01 00:00", "4611686018427387904 ms"),
    ]
    assert [
        duration(each) for each in (500, 59_000, 90_000, 3_600_000, 12 * 3_600_000, 7 * 86_400_000)
    ] == [
        *("0.5 s", "59 s", "1.5 min", "1 hour", "12 hours", "7 days"),
    ]
