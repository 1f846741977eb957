from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.tables.tables import METADATA_TABLES

if TYPE_CHECKING:
    from pylog.tables.metadata_table import MetadataTable


@pytest.mark.parametrize("table", METADATA_TABLES, ids=lambda table: table.name)
def test_every_column_has_a_meaning(table: MetadataTable) -> None:
    assert table.text is not None
    assert [name for name, _, _ in table.text.columns] == table.schema.names
    assert all(meaning for _, _, meaning in table.text.columns)
