"""Texts that are made for single records: what control records say, and what a decoder makes."""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import TYPE_CHECKING

from pylog.inspect.dump.control_lines import control_detail
from pylog.inspect.dump.log_lines import payload_without_key

if TYPE_CHECKING:
    from pylog.inspect.dump.dump_options import DumpOptions


class RecordDetails:
    """Makes the end of a record's line where the kernel does not; no state.

    Parameters
    ----------
    options
        Of the dump.
    """

    def __init__(self, options: DumpOptions) -> None:
        self._options = options
        self.is_of_all = options.prints_data and options.decoder is not None
        self.is_of_control = not options.skips_record_metadata or options.is_json

    def of_control(self, key: bytes | None, value: bytes | None) -> str:
        """Return the end of the line of a control record.

        Raises
        ------
        InvalidRecordError
            It breaks the format.
        """
        return control_detail(key, value, self._options) if self.is_of_control else ""

    def of_data(self, key: bytes | None, value: bytes | None, offset: int) -> str:
        """Return the end of the line of any other record, as the decoder has it.

        Raises
        ------
        InvalidRecordError
            The tool would end here.
        """
        decoder = self._options.decoder
        if decoder is None:
            return ""
        key_text, payload_text = decoder.decode(key, value, offset)
        if self._options.is_json:
            return f',"key":{_json(key_text)},"payload":{_json(payload_text)}'
        bar = "| " if self._options.skips_record_metadata else " "
        parts = []
        if key_text is not None:
            parts.append(f"{bar}key: {key_text}")
        if payload_text is not None:
            is_first = self._options.skips_record_metadata and key_text is None
            start = payload_without_key(self._options) if is_first else " payload: "
            parts.append(start + payload_text)
        return "".join(parts)


def _json(text: str | None) -> str:
    """Return what a decoder has made: an object as it is, a sentence as a string."""
    if text is None:
        return "null"
    return text if text.startswith('{"') else encode_basestring(text)
