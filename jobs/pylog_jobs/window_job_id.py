"""The job id of a window: its own, whatever the values of its parameters are.

An id is the text of the file with values, and after it those that the text does not name. Where
several windows could have that id (``{a}-{b}`` of ``1-2`` and ``3``, or of ``1`` and ``2-3``), a
hash of the values follows, so that each id is that of one window.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, NamedTuple

from pylog_jobs.config_file import placeholders_in
from pylog_jobs.run_window import DATE, END, HOUR, START

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_INSTANT = r"\d{4,5}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z"
_VALUES = {DATE: r"\d{4}-\d\d-\d\d", HOUR: r"\d\d", START: _INSTANT, END: _INSTANT}
_HASH = re.compile(r".* #[0-9a-f]{16}", re.DOTALL)


class WindowJobId(NamedTuple):
    """The id, and the one of before if that is not of this window alone."""

    text: str
    ambiguous: str | None = None


def window_job_id(
    template: str, text: str, values: Mapping[str, str], more: Iterable[str]
) -> WindowJobId:
    """Return the id for a template, which is ``text`` with its values, and for more values."""
    names = list(more)
    legacy = text + "".join(f" {name}={values[name]}" for name in names)
    whole = template + "".join(f" {name}={{{name}}}" for name in names)
    if not _HASH.fullmatch(legacy) and _is_unique(whole, legacy):
        return WindowJobId(legacy)
    told = {found.name: values[found.name] for found in placeholders_in(whole)}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    return WindowJobId(f"{legacy} #{digest[:16]}", legacy)


def _is_unique(template: str, text: str) -> bool:
    """Whether a text is the template with values in one way only.

    Of all ways, greedy groups find the one whose values are the longest from the left on, and
    others the one whose are the shortest; they are the same if there is no other.
    """
    longest, shortest = (
        re.fullmatch(_pattern(template, any_text), text, re.DOTALL)
        for any_text in ("(.*)", "(.*?)")
    )
    return longest is not None and shortest is not None and longest.groups() == shortest.groups()


def _pattern(template: str, any_text: str) -> str:
    pattern, end = "", 0
    groups: dict[str, int] = {}
    for found in placeholders_in(template):
        pattern += re.escape(_plain(template[end : found.start]))
        end = found.end
        if found.name in groups:
            pattern += rf"(?:\{groups[found.name]})"
            continue
        groups[found.name] = len(groups) + 1
        pattern += f"({_VALUES[found.name]})" if found.name in _VALUES else any_text
    return pattern + re.escape(_plain(template[end:]))


def _plain(text: str) -> str:
    return re.sub(r"(?<!\$)\{\{([A-Za-z_]\w*)\}\}", r"{\1}", text)
