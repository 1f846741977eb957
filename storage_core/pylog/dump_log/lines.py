"""The lines about batches, records and index entries, as ``kafka-dump-log`` has them and as JSON.

Records come from a decoder's columns, or are read one by one.

Source: DumpLogSegments.printBatchLevel, dumpLog and printControlRecord (Kafka 3.9 and 4.3).
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pylog.columnar.arrow_buffers import (
    binary_array,
    fixed_width_array,
    int64_values,
    string_array,
)
from pylog.errors import CorruptRecordError, InvalidRecordError
from pylog.internal_topics.control_messages import control_json, has_control_json
from pylog.internal_topics.versions import KafkaVersion
from pylog.model import CompressionType, ControlRecordType
from pylog.record.batch_header import MAGIC_OFFSET, MAGIC_VALUE_V2
from pylog.record.batch_scan import find_batches
from pylog.record.compression import Decompressor
from pylog.record.control_record import parse_control_record_type, parse_end_transaction_marker
from pylog.record.header_sums import has_horizon, last_sequences
from pylog.record.legacy_batch import StoredMessage, iter_stored_messages
from pylog.record.record_batch import RecordBatch
from pylog.record_lines.line_template import NO_CHECKS, NO_RECORDS, Records, Style, line_template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from pylog.columnar.decode import DecodedGroup
    from pylog.dump_log.options import DumpOptions
    from pylog.record.batch_scan import BatchHeaders
    from pylog.record.record import Record
    from pylog.record_lines.line_template import LineTemplate

    Int64Array = npt.NDArray[np.int64]


_MOST_RECORDS = 1 << 14
"""As many as are read one by one before their lines are written."""


def decoded_records(group: DecodedGroup, is_valid: npt.NDArray[np.bool_]) -> Records:
    """Return the records of a group; of its batches, ``is_valid`` have a right checksum."""
    if not group.columns.rows:
        return NO_RECORDS
    arrays = group.columns.arrays
    return Records(
        int64_values(arrays["offset"]),
        int64_values(arrays["timestamp"]),
        _stored_checksums(group, is_valid),
        arrays["key"],
        arrays["value"],
        arrays["headers"],
    )


class RecordsOneByOne:
    """Iterates the records of one batch in parts, as Kafka's tool reads them: up to a fault."""

    def __init__(self, data: memoryview, max_decompressed_bytes: int) -> None:
        self.fault: str | None = None
        decompressor = Decompressor(max_decompressed_bytes)
        self._reading: Iterator[Record | StoredMessage] = (
            RecordBatch(data, decompressor).unassigned_records()
            if data[MAGIC_OFFSET] >= MAGIC_VALUE_V2
            else iter_stored_messages(data, decompressor)
        )

    def __iter__(self) -> Iterator[Records]:
        """Yield at least one part."""
        taken: list[Record | StoredMessage] = []
        try:
            for each in self._reading:
                if len(taken) == _MOST_RECORDS:
                    yield records_of(taken)
                    taken = []
                taken.append(each)
        except (CorruptRecordError, InvalidRecordError) as error:
            self.fault = error.reason
        yield records_of(taken)


def records_of(read: Sequence[Record | StoredMessage]) -> Records:
    """Return records that were read one by one."""
    stored = [each for each in read if isinstance(each, StoredMessage)]
    records = [each.record if isinstance(each, StoredMessage) else each for each in read]
    names = [[name for name, _ in each.headers] for each in records]
    list_ends = np.cumsum([0, *map(len, names)], dtype=np.int32)
    all_names = string_array([name for each in names for name in each])
    all_values = _binary_array([value for each in records for _, value in each.headers])
    return Records(
        np.array([each.offset for each in records], dtype=np.int64),
        np.array([each.timestamp for each in records], dtype=np.int64),
        np.array([each.crc if each.is_valid else -1 - each.crc for each in stored], dtype=np.int64),
        _binary_array([each.key for each in records]),
        _binary_array([each.value for each in records]),
        pa.ListArray.from_arrays(
            fixed_width_array(list_ends),
            pa.StructArray.from_arrays([all_names, all_values], ["key", "value"]),
        ),
    )


def _binary_array(values: Sequence[bytes | None]) -> pa.Array:
    ends = np.cumsum([0, *(len(each or b"") for each in values)], dtype=np.int32)
    data = b"".join(each or b"" for each in values)
    present = np.packbits([each is not None for each in values] or [True], bitorder="little")
    buffers = (pa.py_buffer(ends), pa.py_buffer(data))
    return binary_array(len(values), buffers, present, sum(each is None for each in values))


def _stored_checksums(group: DecodedGroup, is_valid: npt.NDArray[np.bool_]) -> Int64Array:
    headers = group.headers
    if headers.traits.all_v2:
        return NO_CHECKS
    crcs = np.where(is_valid, headers.crcs, -1 - headers.crcs)
    if not headers.codec_ids.any():
        return crcs
    # Messages in wrappers have right checksums, or the group would not have been decoded.
    return np.concatenate(
        [
            find_batches(group.buffer[start:end]).headers.crcs if codec_id else crcs[index, None]
            for index, (codec_id, (start, end)) in enumerate(
                zip(headers.codec_ids.tolist(), group.bounds.tolist(), strict=True)
            )
        ]
    )


_FLAGS = ("isTransactional", "isControl")
_V2 = (
    *("lastOffset", "count", "baseSequence", "lastSequence"),
    *("producerId", "producerEpoch", "partitionLeaderEpoch", *_FLAGS),
)
_BATCH = (
    "$ifV2(baseOffset: $baseOffset "
    + "".join(f"{name}: ${name} " for name in _V2)
    + "deleteHorizonMs: OptionalLong$ifHorizon([$baseTimestamp]$)$ifNoHorizon(.empty$)$)"
    "$ifOld(offset: $lastOffset$)"
    " position: $position $timestampType: $maxTimestamp size: $size magic: $magic"
    " compresscodec: $compresscodec crc: $crc isvalid: $isvalid\n"
)
_RECORD = (
    "| offset: $offset $timestampType: $timestamp keySize: $keySize valueSize: $valueSize"
    "$ifV2( sequence: $sequence headerKeys: [$headerNamesTEXT]$)"
    "$ifOld( isValid: $recordIsValid crc: $recordCrc$brace$)"
)
_KEY_AND_VALUE = "$ifData($ifKey( key: $keyTEXT$)$ifValue( payload: $valueTEXT$)$)"
_KEY_AND_VALUE_ALONE = (
    "$ifData($ifKey(| key: $keyTEXT$ifValue( payload: $valueTEXT$)$)"
    "$ifNoKey($ifValue($payloadAlone$valueTEXT$)$)$)"
)

_JSON_BATCH = (
    '{"type":"batch","path":$path,'
    '$ifV2("baseOffset":$baseOffset,'
    + "".join(f'"{name}":${name},' for name in _V2)
    + '"deleteHorizonMs":$ifHorizon($baseTimestamp$)$ifNoHorizon(null$)$)'
    '$ifOld("lastOffset":$lastOffset$)'
    ',"position":$position,"timestampType":"$timestampType","maxTimestamp":$maxTimestamp'
    ',"size":$size,"magic":$magic,"compresscodec":"$compresscodec","crc":$crc,"isvalid":$isvalid}\n'
)
_JSON_RECORD = '{"type":"record","path":$path,"offset":$offset'
_JSON_METADATA = (
    ',"timestamp":$timestamp,"timestampType":"$timestampType"'
    ',"keySize":$keySize,"valueSize":$valueSize'
    '$ifV2(,"sequence":$sequence,"headerKeys":[$headerNamesJSON]$)'
    '$ifOld(,"isValid":$recordIsValid,"crc":$recordCrc$)'
)
_JSON_KEY_AND_VALUE = (
    '$ifData($values,"key":$ifKey($key{style}$)$ifNoKey(null$)'
    ',"payload":$ifValue($value{style}$)$ifNoValue(null$)$)'
)

# Of a table of batches, for the kernel. The base offset is the last one in v0 and v1; the base
# timestamp is the delete horizon of a batch that has one.
_COLUMNS: dict[str, Callable[[BatchHeaders], npt.NDArray[Any]]] = {
    "baseOffset": lambda of: of.offsets,
    "lastOffset": lambda of: of.last_offsets,
    "count": lambda of: of.record_counts,
    "baseSequence": lambda of: of.base_sequences,
    "lastSequence": last_sequences,
    "producerId": lambda of: of.producer_ids,
    "producerEpoch": lambda of: of.producer_epochs,
    "partitionLeaderEpoch": lambda of: of.partition_leader_epochs,
    "isTransactional": lambda of: of.is_transactional,
    "isControl": lambda of: of.is_control,
    "hasDeleteHorizon": has_horizon,
    "baseTimestamp": lambda of: of.base_timestamps,
    "position": lambda of: of.positions,
    "timestampType": lambda of: np.where(of.magics == 0, 0, 1 + of.is_append_time),
    "maxTimestamp": lambda of: of.max_timestamps,
    "size": lambda of: of.sizes_bytes,
    "magic": lambda of: of.magics,
    "compresscodec": lambda of: of.codec_ids,
    "crc": lambda of: of.crcs,
    "isvalid": lambda of: np.ones(len(of)),
    "isV2": lambda of: of.is_v2,
}
COUNT, IS_CONTROL, POSITION, SIZE, MAGIC, IS_VALID = map(
    list(_COLUMNS).index, ("count", "isControl", "position", "size", "magic", "isvalid")
)

_BOOLEAN = ("false", "true")
_WORDS = {
    **dict.fromkeys((*_FLAGS, "isvalid"), _BOOLEAN),
    "timestampType": ("NoTimestampType", "CreateTime", "LogAppendTime"),
    "compresscodec": tuple(codec.label for codec in CompressionType),
}
_CONDITIONS = {
    "ifV2": ("isV2", 1),
    "ifOld": ("isV2", 0),
    "ifHorizon": ("hasDeleteHorizon", 1),
    "ifNoHorizon": ("hasDeleteHorizon", 0),
    "ifData": ("isControl", 0),
}


_MARKERS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
_NAMES = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange:",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters",
}


def batch_and_record_lines(options: DumpOptions, path: str) -> LineTemplate:
    """Return the template of the lines of a ``.log`` file."""
    if options.is_json:
        batch = _JSON_BATCH
        record = _JSON_RECORD + ("" if options.skips_record_metadata else _JSON_METADATA)
        style = Style.JSON if options.values == "text" else Style.BASE64
        data, end = _JSON_KEY_AND_VALUE.replace("{style}", style.name), "}\n"
    else:
        batch = _BATCH
        record = "" if options.skips_record_metadata else _RECORD
        data, end = _KEY_AND_VALUE_ALONE if options.skips_record_metadata else _KEY_AND_VALUE, "\n"
    record += "$detail" + (data if options.prints_data and options.decoder is None else "") + end
    return line_template(
        batch,
        record if options.is_deep else "",
        columns=list(_COLUMNS),
        words=_WORDS,
        conditions=_CONDITIONS,
        texts={
            "path": encode_basestring_ascii(path),
            "values": f',"values":"{options.values}"',
            "brace": "" if options.kafka_version >= KafkaVersion.V4_3 else "}",  # Kafka's own
            "payloadAlone": payload_without_key(options),
        },
    )


def payload_without_key(options: DumpOptions) -> str:
    """Return what stands before a payload where a line has neither metadata nor key."""
    return "| payload: " if options.kafka_version >= KafkaVersion.V4_3 else " payload: "


def entry_lines(names: Sequence[str], kind: str, path: str, options: DumpOptions) -> LineTemplate:
    """Return the template of an index's lines: a number for each name."""
    if options.is_json:
        fields = "".join(f',"{name}":${name}' for name in names)
        line = f'{{"type":"{kind}","path":$path{fields}}}\n'
    else:
        line = " ".join(f"{name}: ${name}" for name in names) + "\n"
    return line_template(line, columns=names, texts={"path": encode_basestring_ascii(path)})


def json_line(fields: Mapping[str, object]) -> str:
    """Return an object on a line of its own, written as the kernel writes the others."""
    return json.dumps(fields, separators=(",", ":")) + "\n"


def in_utf8(text: str) -> memoryview:
    """Return a text as bytes; what is not UTF-8 in a file's name is the bytes that it was."""
    return memoryview(text.encode("utf-8", "surrogateescape"))


def batch_table(headers: BatchHeaders) -> npt.NDArray[np.int64]:
    """Return the numbers of batches, shape (batches, columns), all checksums taken for right."""
    table = np.empty((len(headers), len(_COLUMNS)), dtype=np.int64)
    for place, of in enumerate(_COLUMNS.values()):
        table[:, place] = of(headers)
    return table


def control_text(key: bytes | None, value: bytes | None, options: DumpOptions) -> str:
    """Return the end of a control record's line; `InvalidRecordError` if it breaks the format."""
    if options.skips_record_metadata and not options.is_json:
        return ""
    kind = parse_control_record_type(key)
    if kind in _MARKERS:
        epoch = parse_end_transaction_marker(key, value).coordinator_epoch
        if options.is_json:
            return f',"endTxnMarker":"{kind.name}","coordinatorEpoch":{epoch}'
        return f" endTxnMarker: {kind.name} coordinatorEpoch: {epoch}"
    is_leader_change = kind is ControlRecordType.LEADER_CHANGE
    is_decoded = not is_leader_change or options.kafka_version >= KafkaVersion.V4_1
    if has_control_json(kind) and is_decoded:
        if value is None:
            reason = f"control record of type {kind.name} has no value"
            raise InvalidRecordError(reason)
        text = control_json(kind, value, options.kafka_version)
        if options.is_json:
            return f',"controlType":"{kind.name}","data":{text}'
        return f" {_NAMES[kind]} {text}"
    type_id = int.from_bytes((key or b"")[2:4], "big", signed=True)
    if options.is_json:
        return f',"controlType":"{kind.name}","controlTypeId":{type_id}'
    return f" controlType: {kind.name}({type_id})"


def decoded_text(key: bytes | None, value: bytes | None, offset: int, options: DumpOptions) -> str:
    """Return the end of another record's line; `InvalidRecordError` where the tool would end."""
    if options.decoder is None:
        return ""
    key_text, payload = options.decoder.decode(key, value, offset)
    if options.is_json:
        return f',"key":{_json(key_text)},"payload":{_json(payload)}'
    is_bare = options.skips_record_metadata
    text = "" if key_text is None else f"{'| ' if is_bare else ' '}key: {key_text}"
    if payload is None:
        return text
    is_alone = is_bare and key_text is None
    return text + (payload_without_key(options) if is_alone else " payload: ") + payload


def _json(text: str | None) -> str:
    """Return what a decoder has made: an object as it is, a sentence as a string."""
    if text is None:
        return "null"
    return text if text.startswith(('{"', '["')) or text == "{}" else encode_basestring(text)
