"""Text that whatever a regular expression matches has in it, for a look before the match."""

from __future__ import annotations

import re

_SPECIAL = frozenset(".^$*+?{}[]\\|()")
_OPTIONAL = frozenset("*?{")  # of what stands before
_OTHER_MEANING = re.IGNORECASE | re.VERBOSE


def required_text(pattern: str, flags: int) -> str:
    """Return the longest such text that is easily seen; empty if there is none.

    Only characters that stand for themselves, outside of groups and classes, are looked at.

    Parameters
    ----------
    pattern
        One that `re.compile` takes.
    flags
        Of the compiled pattern, with those that it sets itself.
    """
    if flags & _OTHER_MEANING or "|" in pattern or "(?" in pattern:
        return ""
    runs, run = [""], ""
    at = 0
    while at < len(pattern):
        character = pattern[at]
        following = pattern[at + 1 : at + 2]
        if character == "\\" and following in _SPECIAL:
            character, at = following, at + 1  # a character after all
            following = pattern[at + 1 : at + 2]
        elif character in _SPECIAL:
            runs.append(run)
            run, at = "", _end_of_special(pattern, at)
            continue
        if following in _OPTIONAL:
            runs.append(run)
            run = ""
        elif following == "+":
            runs.append(run + character)
            run = ""
        else:
            run += character
        at += 1
    return max([*runs, run], key=len)


def _end_of_special(pattern: str, at: int) -> int:
    """Return where what begins with a special character ends."""
    match pattern[at]:
        case "\\":
            return _end_of_escape(pattern, at)
        case "[":
            return _end_of_class(pattern, at)
        case "(":
            return _end_of_group(pattern, at)
        case "{":
            end = pattern.find("}", at)
            return len(pattern) if end < 0 else end + 1
    return at + 1


def _end_of_escape(pattern: str, at: int) -> int:
    """Return where an escape ends, with whatever digits belong to it."""
    end = at + 2
    while end < len(pattern) and (pattern[end].isalnum() or pattern[end] == "{"):
        end += 1  # of \x41, \u0041 and \12; what follows \d is passed over with it
        if pattern[end - 1] == "{":
            return _end_of_special(pattern, end - 1)
    return end


def _end_of_class(pattern: str, at: int) -> int:
    at += 1
    if pattern[at : at + 1] == "^":
        at += 1
    at += 1  # a bracket that closes is a member if it comes first
    if pattern[at - 1 : at] == "\\":
        at += 1
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _end_of_group(pattern: str, at: int) -> int:
    at += 1
    while at < len(pattern) and pattern[at] != ")":
        match pattern[at]:
            case "\\":
                at += 2
            case "[":
                at = _end_of_class(pattern, at)
            case "(":
                at = _end_of_group(pattern, at)
            case _:
                at += 1
    return at + 1
