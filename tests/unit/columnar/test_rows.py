"""The text that declares a table's columns."""

from __future__ import annotations

from pylog.columnar.rows import TableText


def test_a_meaning_that_goes_on_in_the_next_line_is_read_whole() -> None:
    text = TableText.parse("About.\n\na int64 one\n  two\nb_c list<int32> three\n\nNotes\n\nmore.")
    assert text.columns == (("a", "int64", "one two"), ("b_c", "list<int32>", "three"))
    assert text.notes == "Notes\n\nmore."
    assert text.schema.names == ["a", "b_c"]
