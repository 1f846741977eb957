"""The lines about batches, records and index entries, as ``kafka-dump-log`` has them and as JSON.

Source: DumpLogSegments.printBatchLevel, dumpLog and printControlRecord (Kafka 3.9 and 4.3).
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Any

import numpy as np

from pylog.dump_log.line_template import LineTemplate, Style, line_template
from pylog.errors import InvalidRecordError
from pylog.internal_topics.control_messages import control_json, has_control_json
from pylog.internal_topics.versions import KafkaVersion
from pylog.model import NO_SEQUENCE, CompressionType, ControlRecordType
from pylog.record.batch_layout import DELETE_HORIZON_FLAG_MASK
from pylog.record.control_record import parse_control_record_type, parse_end_transaction_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from pylog.dump_log.options import DumpOptions
    from pylog.record.batch_scan import BatchHeaders


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
    "$ifV2( sequence: $sequence headerKeys: [$headersTEXT]$)"
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
    '$ifV2(,"sequence":$sequence,"headerKeys":[$headersJSON]$)'
    '$ifOld(,"isValid":$recordIsValid,"crc":$recordCrc$)'
)
_JSON_KEY_AND_VALUE = (
    '$ifData($values,"key":$ifKey($key{style}$)$ifNoKey(null$)'
    ',"payload":$ifValue($value{style}$)$ifNoValue(null$)$)'
)

_MOST_SEQUENCE = 0x7FFFFFFF


def _last_sequences(headers: BatchHeaders) -> npt.NDArray[np.int64]:
    bases = headers.base_sequences
    lasts = (bases + headers.last_offsets - headers.offsets) & _MOST_SEQUENCE
    return np.where(bases == NO_SEQUENCE, NO_SEQUENCE, lasts)


# Of a table of batches, for the kernel. The base offset is the last one in v0 and v1; the base
# timestamp is the delete horizon of a batch that has one.
_COLUMNS: dict[str, Callable[[BatchHeaders], npt.NDArray[Any]]] = {
    "baseOffset": lambda of: of.offsets,
    "lastOffset": lambda of: of.last_offsets,
    "count": lambda of: of.record_counts,
    "baseSequence": lambda of: of.base_sequences,
    "lastSequence": _last_sequences,
    "producerId": lambda of: of.producer_ids,
    "producerEpoch": lambda of: of.producer_epochs,
    "partitionLeaderEpoch": lambda of: of.partition_leader_epochs,
    "isTransactional": lambda of: of.is_transactional,
    "isControl": lambda of: of.is_control,
    "hasDeleteHorizon": lambda of: of.is_v2 & (of.attributes & DELETE_HORIZON_FLAG_MASK != 0),
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
    """Return the template of the lines of a ``.log`` file.

    Keys and values are not in it where something else makes text of them: then it is the detail of
    a record, as it is of a control record.
    """
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
            "values": ',"values":"text"' if options.values == "text" else "",
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
    return text if text.startswith('{"') else encode_basestring(text)
