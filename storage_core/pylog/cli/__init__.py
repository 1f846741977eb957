"""The command line, ``pylog``: parses arguments, calls what `pylog` exports, renders the answer.

`pylog.cli.main` is the program, `pylog.cli.commands` has a file for each command and
`pylog.cli.rendering` what a terminal shows. A command's module is imported when that command runs,
and reaches Numba and Arrow through `pylog`'s lazy names, so that ``--help`` and ``ls`` start
without them.
"""
