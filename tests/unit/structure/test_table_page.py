from __future__ import annotations

import pytest

from pylog.inspect.tables.metadata_table import METADATA_TABLES, MetadataTable
from tests.structure.__main__ import ROOT
from tests.structure.table_page import PAGE, table_page, table_text


@pytest.mark.parametrize("table", METADATA_TABLES, ids=lambda table: table.name)
def test_every_column_is_documented_and_no_other(table: MetadataTable) -> None:
    meanings = table_text(table.name).meanings
    assert ["topic", "partition", *meanings] == table.schema.names
    assert all(meanings.values())


def test_a_meaning_that_goes_on_in_the_next_line_is_read_whole() -> None:
    assert table_text("leader_epochs").meanings["defect"] == (
        "in a row without an epoch: why the file cannot be read. In the row of the last epoch: why "
        "the log end offset is not known"
    )


def test_the_page_in_docs_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text("utf-8") == table_page(), "run: make import-graph"
