"""The entry point: until the program can answer Ctrl-C itself, the signal ends it without a word.

Loading the program takes a tenth of a second, in which Python would answer with a traceback.
"""

from __future__ import annotations

import signal

from pylog.lazy_modules import load_name


def main() -> None:
    """Load the program and run it on the command line's arguments."""
    # Whoever starts it in the background of a shell script has it ignore the signal.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    load_name("pylog.cli.main", "main")()
