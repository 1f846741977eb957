"""The rules about the shape of the packages, checked on their sources by ``make lint``.

`sizes` says how large a file, a function and the package ``log`` may be, `imports` who may import
whom and how, `layers` that imports point down the layers contract of ``pyproject.toml``, `support`
what of the product the tests' own helpers may use. `picture` draws the imports, and `page` writes
the page around the picture; `cli_page` and `table_page` write the pages about the commands and the
metadata tables. ``make import-graph`` makes all of them, and ``make lint`` says when one is out of
date.

Nothing of the packages is imported here: sources are parsed, so that a broken tree is checked, too.
"""
