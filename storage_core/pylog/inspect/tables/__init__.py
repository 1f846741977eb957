"""The metadata tables, one file a table; `pylog.inspect.tables.table_names` needs no Arrow."""
