"""The command line, ``pylog``: one command a file, no logic of the core.

`pylog.cli.main` is the program. It imports a command's module when that command is run, and the
commands reach Numba and Arrow through `pylog`'s lazy names, so that ``--help`` and ``ls`` start
without them.
"""
