"""A topic that is asked for, and is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.errors import UnknownTopicOrPartitionError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_topic_that_is_not_there_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    pylog.write_topic(tmp_path, "orders", pa.table({"value": [b"v"]}))
    with pytest.raises(UnknownTopicOrPartitionError, match="'order' here; did you mean 'orders'"):
        pylog.serve(tmp_path, topics=["order"])
