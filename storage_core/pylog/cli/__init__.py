"""The command line, ``pylog``: parses arguments, calls what `pylog` exports, renders the answer.

`pylog.cli.main` is the program, `pylog.cli.commands` has a file for each command and
`pylog.cli.rendering` what a terminal shows. A command's module is imported when that command runs,
and reaches Numba and Arrow through `pylog`'s lazy names, so that ``--help`` and ``ls`` start
without them.
"""

import sys

import pylog

if "read_table" not in getattr(pylog, "__all__", ()):
    # Another distribution has written over our package: everything would fail, each in its own way.
    sys.stderr.write(
        f"pylog: error: {getattr(pylog, '__file__', 'pylog')} is not of pyspark-pylog: another "
        "distribution has the same import name. Install pyspark-pylog into an environment of its "
        "own\n"
    )
    raise SystemExit(2)
