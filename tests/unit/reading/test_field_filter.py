from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import pylog
from pylog.reading.field_filter import FieldFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

TYPES = {"value": pa.struct([("id", pa.int64())])}
IDS = [7, None, 8, 7]


def rows(ids: Sequence[int | None]) -> pa.RecordBatch:
    values = [*({"id": each} for each in ids), None]
    return pa.record_batch({"value": pa.array(values, TYPES["value"])})


def test_rows_of_which_the_condition_is_true_pass() -> None:
    where = FieldFilter.of("value.id = 7", TYPES)
    assert where.test.columns == ("value",)
    assert where.passing(rows(IDS), rows(IDS)).tolist() == [True, False, False, True, False]
    sliced = rows(IDS).slice(2)
    assert where.passing(sliced, sliced).tolist() == [False, True, False]
    assert where.passing(rows([]), rows([])).tolist() == [False]
    assert where.passing(rows(IDS).slice(0, 0), rows(IDS).slice(0, 0)).tolist() == []


def test_rows_keep_their_order_in_large_batches() -> None:
    ids = [each % 1000 for each in range(100_000)]
    mask = FieldFilter.of("value.id < 3", TYPES).test.mask(rows(ids))
    assert mask.nonzero()[0].tolist() == [row for row in range(100_000) if row % 1000 < 3]


def test_the_inverse_passes_what_is_not_true() -> None:
    keys = pylog.RecordFilter.matching(key_contains="a")
    where = FieldFilter.of("value.id = 7", TYPES, inverted_with=keys)
    batch = pa.record_batch({"key": pa.array([b"a", b"a", b"a", b"b", None], pa.binary())})
    assert where.byte_columns == ("key",)
    assert where.passing(rows(IDS), batch).tolist() == [False, True, True, True, True]
    alone = FieldFilter.of("value.id = 7", TYPES, inverted_with=pylog.RecordFilter())
    assert alone.passing(rows(IDS), batch).tolist() == [False, True, True, False, True]


def test_filters_can_be_sent_to_other_processes() -> None:
    where = pickle.loads(pickle.dumps(FieldFilter.of("value.id = 7", TYPES)))  # noqa: S301 - our own
    assert where.passing(rows(IDS), rows(IDS)).tolist() == [True, False, False, True, False]


def test_a_condition_without_decoded_columns_is_an_error() -> None:
    with pytest.raises(ValueError, match="give --value-format auto"):
        FieldFilter.of("value.id = 7", {})
