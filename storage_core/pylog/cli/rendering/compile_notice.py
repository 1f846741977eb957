"""Tells a user at a terminal why the first run takes longer."""

from __future__ import annotations

import sys

_ONCE = "compiling kernels (once)…"
_EVERY_TIME = (
    "compiling kernels (at every run: no directory to keep them in can be written; set "
    "NUMBA_CACHE_DIR to one)…"
)


def announce_compilation() -> None:
    """Say so on stderr, if that is a terminal, when Numba begins to compile; once."""
    if sys.stderr is None or not sys.stderr.isatty():
        return
    # Not at the head of the file: Numba takes a second to import, and the caller has done so.
    from numba.core.event import Event, Listener, register  # noqa: PLC0415

    class Notice(Listener):
        has_spoken = False

        def on_start(self, event: Event) -> None:
            if not self.has_spoken:
                self.has_spoken = True
                is_kept = event.data["dispatcher"].stats.cache_path is not None
                sys.stderr.write(f"pylog: {_ONCE if is_kept else _EVERY_TIME}\n")
                sys.stderr.flush()

        def on_end(self, event: Event) -> None:
            """Nothing to say then."""

    register("numba:compile", Notice())  # type: ignore[no-untyped-call]  # numba's
