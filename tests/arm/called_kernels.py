"""A plugin of pytest that prints, at the end, the names of the kernels that the tests called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.native.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

_NAMES: set[str] = set()
_find_code = Kernel._find_code


def _noted(kernel: Kernel) -> Callable[..., object]:
    _NAMES.add(kernel.signature.name)
    return _find_code(kernel)


def pytest_configure() -> None:
    """Note each kernel at its first call."""
    Kernel._find_code = _noted  # type: ignore[method-assign, assignment]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print them, above the line that counts tests."""
    terminalreporter.write_line(f"kernels: {' '.join(sorted(_NAMES))}")
