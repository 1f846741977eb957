"""A finding is as its kind declares it."""

from __future__ import annotations

import pytest

from pylog.findings import kinds
from pylog.findings.finding import Severity


def test_a_finding_is_as_bad_as_its_kind_says() -> None:
    assert kinds.OFFSET_GAP.found("f", "gone").severity is Severity.WARNING
    with pytest.raises(ValueError, match="offset_gap is of severity error, expected warning"):
        kinds.OFFSET_GAP.found("f", "gone", severity=Severity.ERROR)
    with pytest.raises(ValueError, match="is of severity None, expected error or warning"):
        kinds.MISSING_SEGMENT.found("f", "gone")
