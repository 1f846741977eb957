"""The lines about the entries of indexes: rows of numbers with names."""

from __future__ import annotations

from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING

from pylog.inspect.dump.line_template import TemplateBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.inspect.dump.dump_options import DumpOptions
    from pylog.inspect.dump.line_template import LineTemplate


def number_lines(
    names: Sequence[str], json_type: str, path: str, options: DumpOptions
) -> LineTemplate:
    """Return the template of lines with a number for each name.

    Parameters
    ----------
    names
        Of the columns of the table that is written.
    json_type
        What a JSON object is of.
    path
        The file, as a JSON object names it.
    options
        Of the dump.
    """
    lines = TemplateBuilder()
    if options.is_json:
        lines.text(f'{{"type":"{json_type}","path":{encode_basestring_ascii(path)}')
        for column, name in enumerate(names):
            lines.text(f',"{name}":').number(column)
        return lines.text("}\n").finish()
    for column, name in enumerate(names):
        lines.text(f"{' ' if column else ''}{name}: ").number(column)
    return lines.text("\n").finish()
