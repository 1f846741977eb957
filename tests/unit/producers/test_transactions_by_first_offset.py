from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pylog.producers.producer_state_entry import TransactionsByFirstOffset, TxnMetadata

OFFSETS = st.integers(0, 12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), OFFSETS, st.none() | OFFSETS),
        st.tuples(st.just("pop"), OFFSETS, st.none()),
        st.tuples(st.just("remove"), OFFSETS, st.none()),
    ),
    max_size=30,
)


@given(STEPS)
def test_transactions_are_what_a_sorted_dictionary_holds(
    steps: list[tuple[str, int, int | None]],
) -> None:
    ours = TransactionsByFirstOffset()
    model: dict[int, TxnMetadata] = {}
    for producer_id, (what, offset, last_offset) in enumerate(steps):
        if what == "put":
            model[offset] = TxnMetadata(producer_id, offset, last_offset)
            ours.put(model[offset])
        elif what == "pop":
            assert ours.pop(offset) == model.pop(offset, None)
        else:
            ours.remove_completed_before(offset)
            model = {
                first: each
                for first, each in model.items()
                if each.last_offset is None or each.last_offset >= offset
            }
        in_order = [model[first] for first in sorted(model)]
        assert list(ours) == in_order
        assert len(ours) == len(in_order)
        assert ours.first == (in_order[0] if in_order else None)


def test_none_is_left_after_clearing() -> None:
    transactions = TransactionsByFirstOffset()
    transactions.put(TxnMetadata(1, 5))
    transactions.clear()
    assert (len(transactions), transactions.first) == (0, None)
