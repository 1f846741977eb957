"""The tests of the kernels also pass without compilation, and with every index checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pylog.kernels.decode_legacy import find_bad_crc
from tests.support.reading import as_buffer

REPOSITORY = Path(__file__).parents[3]
KERNEL_TESTS = (
    "tests/unit/kernels",
    "tests/property/test_decoding.py",
    "tests/property/test_hostile_bytes.py",
)
MODES = ("NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK")


@pytest.fixture(autouse=True, scope="module")
def way_to_run() -> None:
    """Take the place of the fixture that runs each test twice: here processes of their own do."""


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(any(mode in os.environ for mode in MODES), reason="already in one of them")
@pytest.mark.parametrize("mode", MODES)
def test_kernel_tests_pass_in_the_other_modes(mode: str, pytestconfig: pytest.Config) -> None:
    # Numba's cache does not know of the modes, so each needs one of its own; kept between runs.
    cache = pytestconfig.cache.mkdir(f"kernels-{mode.lower()}")
    environment = {name: value for name, value in os.environ.items() if "XDIST" not in name}
    environment |= {
        mode: "1",
        "NUMBA_CACHE_DIR": str(cache),
        "HYPOTHESIS_PROFILE": "few",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    run = subprocess.run(
        [*command, *KERNEL_TESTS],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.skipif("NUMBA_BOUNDSCHECK" not in os.environ, reason="only with NUMBA_BOUNDSCHECK=1")
def test_a_read_out_of_bounds_is_noticed_in_the_mode_that_checks() -> None:
    sizes = np.array([1_000], dtype=np.int64)
    with pytest.raises(IndexError):
        find_bad_crc(as_buffer(bytes(100)), np.zeros(1, dtype=np.int64), sizes)
