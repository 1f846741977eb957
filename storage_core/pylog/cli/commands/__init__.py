"""One command a file. The module and its command are called like the command, ``_`` for ``-``."""
