"""The metadata tables: each declares its columns and makes its rows; `tables.tables` lists them."""
