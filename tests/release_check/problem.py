"""What stands in the way of a release."""

from __future__ import annotations

from typing import NamedTuple


class StepFailedError(RuntimeError):
    """A step did not do what it should; the text says which and how."""


class Problem(NamedTuple):
    """What is wrong, and what to do.

    Attributes
    ----------
    what
        A sentence without its full stop.
    advice
        What to do about it, likewise.
    is_warning
        Whether a dry run passes with it. A release does not.
    """

    what: str
    advice: str
    is_warning: bool = False
