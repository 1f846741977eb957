"""The command line, ``pylog``: parses arguments, calls what `pylog` exports, renders the answer.

`pylog.cli.main` is the program; `pylog.cli.commands` has a file for each command, with its options,
its help and what a terminal shows of it. A command's module is imported when that command runs, and
reaches Numba and Arrow through `pylog`'s lazy names, so that ``--help`` and ``ls`` start without
them.
"""

import sys

import pylog

if "read_table" not in getattr(pylog, "__all__", ()):
    # Everything would fail, each in its own way.
    found = getattr(pylog, "__file__", None)
    if found is None:
        why = "the package pylog has lost files, as it does when another distribution that has the "
        why += "same import name is uninstalled. Install pyspark-pylog again"
    else:
        why = f"{found} is not of pyspark-pylog: another distribution has the same import name. "
        why += "Uninstall it and install pyspark-pylog again, or give each an environment"
    sys.stderr.write(f"pylog: error: {why}\n")
    raise SystemExit(2)
