"""Sizes in bytes as people read them."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def format_bytes(size_bytes: int) -> str:
    """Return ``512B``, ``1.5KiB``, ``120MiB``: three digits, no blank, powers of 1024."""
    if size_bytes < 1024:
        return f"{size_bytes}B"
    size = float(size_bytes)
    for unit in _UNITS:
        size /= 1024
        if size < 1023.5 or unit == _UNITS[-1]:
            break
    return f"{size:.1f}{unit}" if size < 99.95 else f"{size:.0f}{unit}"
