"""The ways in which kernels run in tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.unit.native.sample_kernels import clear, double_all, is_positive

SAMPLES = (clear, double_all, is_positive)
BY_NUMBA = "Numba"
LIBRARY = "library"


def doubled(**changes: object) -> object:
    arguments: dict[str, Any] = {
        "values": np.array([1, -5, 1 << 40]),
        "table": np.array([[1, 2], [3, 4]], dtype=np.int32),
        "row": 1,
        "is_row_wanted": True,
        "doubled": np.zeros(3, dtype=np.int64),
    }
    arguments |= changes
    return double_all(*arguments.values()), arguments["doubled"].tolist()
