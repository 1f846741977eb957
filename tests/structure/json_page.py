"""The page about JSON: what the commands print, shortened; ``json_page.md`` has the text around it.

A line ``<!-- pylog … -->`` of that file stands for what the command prints. ``[2]`` after it is one
line of the output, from 0, and ``[copy]`` the member that is shown alone. Commands run in turn in a
folder with the directories of ``pylog demo kafka``. Of a list of objects, one is shown.
"""

from __future__ import annotations

import io
import json
import re
import shlex
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from pylog.cli.main import run

PAGE = "docs/json.md"

_TEXT = Path(__file__).with_name("json_page.md")
_MARK = re.compile(
    r"^<!-- pylog (?P<command>.*?)(?: \[(?P<line>-?\d+)\])?(?: \[(?P<member>\w+)\])? -->$",
    re.MULTILINE,
)
_WIDTH = 110
_LINES = "user-1\tfirst\nuser-2\tsecond\n"
"""What commands read from standard input."""

# What differs from run to run, and from one version of a codec's library to the next.
_FIXED = {
    "now": 1795420800000,
    "willExpire": False,
    "recompressedBytes": 6000,
    "estimatedBytes": 6000,
    "ratio": 0.55,
    "ratioLow": 0.55,
    "ratioHigh": 0.55,
}
_FIXED_OF = {"create-topic": {"topicId": "yRrWECj2Sd2z96XLlfZIZg"}}


def json_page() -> str:
    """Return the page."""
    with TemporaryDirectory() as folder, chdir(folder):
        _output(["demo", "kafka"])
        return _MARK.sub(_block, _TEXT.read_text(encoding="utf-8"))


def _block(mark: re.Match[str]) -> str:
    arguments = shlex.split(mark["command"])
    output = _output(arguments)
    text = output if mark["line"] is None else output.splitlines()[int(mark["line"])]
    fixed = _FIXED | _FIXED_OF.get(arguments[0], {})
    document = json.loads(text)
    shown = document if mark["member"] is None else document[mark["member"]]
    return f"```json\n{_shown(_shortened(shown, fixed))}\n```"


def _output(arguments: list[str]) -> str:
    output = io.TextIOWrapper(io.BytesIO(), "utf-8")
    Path("lines.tsv").write_text(_LINES, "utf-8")
    with (
        Path("lines.tsv").open(encoding="utf-8") as lines,
        redirect_stdout(output),
        patch("sys.stdin", lines),
    ):
        status = run(arguments)
    if status > 1:
        msg = f"pylog {shlex.join(arguments)} ended with status {status}"
        raise RuntimeError(msg)
    output.flush()
    output.seek(0)
    return output.read()


def _shortened(value: Any, fixed: dict[str, Any], name: str = "") -> Any:  # noqa: ANN401
    """Return what is shown of a value: one element of a list, and no time of the run."""
    if value is not None and name in fixed and not isinstance(value, list):
        return fixed[name]
    if isinstance(value, dict):
        return {key: _shortened(each, fixed, key) for key, each in value.items()}
    if isinstance(value, list):
        is_of_objects = any(isinstance(each, dict) for each in value)
        shown = sorted(value, key=_richness, reverse=True)[:1] if is_of_objects else value
        return [_shortened(each, fixed) for each in shown]
    return _without_folder(value)


def _richness(value: dict[str, Any]) -> int:
    """Return how much an element shows: the first of the richest is the one to look at."""
    return sum(each not in (None, [], {}) for each in value.values())


def _without_folder(value: Any) -> Any:  # noqa: ANN401
    return value.replace(f"{Path.cwd()}/", "") if isinstance(value, str) else value


def _shown(value: Any, indent: int = 0) -> str:  # noqa: ANN401
    """Return JSON in which what fits in a line takes one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= _WIDTH or not isinstance(value, (dict, list)):
        return flat
    blanks = " " * (indent + 2)
    if isinstance(value, list):
        lines = [f"{blanks}{_shown(each, indent + 2)}" for each in value]
        return "[\n" + ",\n".join(lines) + f"\n{' ' * indent}]"
    lines, line = [], ""
    for key, each in value.items():
        member = f"{json.dumps(key)}: {_shown(each, indent + 2)}"
        if line and ("\n" in member or len(blanks) + len(line) + len(member) + 3 > _WIDTH):
            lines.append(blanks + line)
            line = ""
        line += f", {member}" if line else member
        if "\n" in member:
            lines.append(blanks + line)
            line = ""
    lines += [blanks + line] * bool(line)
    return "{\n" + ",\n".join(lines) + f"\n{' ' * indent}}}"
