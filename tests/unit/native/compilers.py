"""Whether kernels can be compiled here: in a clone's environment, not in a user's."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from tests.conftest import NUMBA_IS_OFF

needs_compiler = pytest.mark.skipif(
    find_spec("numba") is None or find_spec("ziglang") is None,
    reason="Numba and ziglang are not installed",
)
only_libraries = pytest.mark.skipif(
    NUMBA_IS_OFF or "NUMBA_BOUNDSCHECK" in os.environ, reason="kernels are called otherwise"
)
