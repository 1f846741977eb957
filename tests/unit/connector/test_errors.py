"""What the data source adds to errors of the library."""

from __future__ import annotations

import pytest

from pylog.errors import SegmentReplacedError, SegmentVanishedError
from pyspark_pylog.errors import advice_added

LOG = "s3://kafka/orders-0/00000000000000000000.log"


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (SegmentReplacedError, "; load() again to read what is there now"),
        (SegmentVanishedError, "; if retention deleted it since the DataFrame's first action, "),
    ],
)
def test_a_file_that_is_another_one_or_gone_comes_with_what_to_do(
    kind: type[SegmentVanishedError], advice: str
) -> None:
    with pytest.raises(kind) as caught, advice_added():
        raise kind("file is not what it was", LOG)
    assert type(caught.value) is kind
    assert f": {LOG}: file is not what it was{advice}" in str(caught.value)
