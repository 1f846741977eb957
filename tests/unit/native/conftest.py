from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.kernel_compilation import build_libraries, this_platform
from pylog.native.library import KernelLibrary, these_levels
from tests.unit.native.compilers import only_libraries
from tests.unit.native.kernel_runs import BY_NUMBA, LIBRARY, SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", params=[BY_NUMBA, pytest.param(LIBRARY, marks=only_libraries)])
def way_to_run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Have the samples run by Numba, which runs what no library has, or from one of their own."""
    if request.param == BY_NUMBA:
        yield request.param
        return
    level = these_levels()[0]
    folder = tmp_path_factory.mktemp("kernels") / "samples"
    [path] = build_libraries(SAMPLES, this_platform(), [level], folder)
    library = KernelLibrary(level, path)
    with pytest.MonkeyPatch.context() as patch:
        for each in SAMPLES:
            entry = library.entry(each.signature.name)
            assert entry is not None
            patch.setattr(each, "_call", each.signature.caller(entry))
        yield request.param
