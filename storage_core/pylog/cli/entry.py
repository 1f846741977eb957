"""The entry point: until the program can answer Ctrl-C itself, the signal ends it without a word.

Loading the program takes a tenth of a second, in which Python would answer with a traceback.
"""

from __future__ import annotations

import gc
import signal

from pylog.lazy_modules import load_name

_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    """Load the program and run it on the command line's arguments."""
    # Whoever starts it in the background of a shell script has it ignore the signal.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = load_name("pylog.cli.main", "main")
    # Ten thousand partitions are a million objects, which Python would go through again and again.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    program()
