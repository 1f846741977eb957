"""The lines about batches and records, as ``kafka-dump-log`` prints them and as JSON.

Source: DumpLogSegments.printBatchLevel and dumpLog (Kafka 3.9 and 4.3).
"""

from __future__ import annotations

from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING

from pylog.inspect.dump import batch_table as columns
from pylog.inspect.dump.line_template import LineTemplate, Style, TemplateBuilder
from pylog.internal_topics.versions import KafkaVersion
from pylog.model import CompressionType

if TYPE_CHECKING:
    from pylog.inspect.dump.dump_options import DumpOptions

_TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")
_CODECS = tuple(codec.label for codec in CompressionType)
_FLAG = ("false", "true")
_NUMBERS_OF_V2 = (
    ("lastOffset", columns.LAST_OFFSET),
    ("count", columns.RECORD_COUNT),
    ("baseSequence", columns.BASE_SEQUENCE),
    ("lastSequence", columns.LAST_SEQUENCE),
    ("producerId", columns.PRODUCER_ID),
    ("producerEpoch", columns.PRODUCER_EPOCH),
    ("partitionLeaderEpoch", columns.PARTITION_LEADER_EPOCH),
)
"""What a line says of a batch of v2 after its base offset, in this order, as text and as JSON."""


def batch_and_record_lines(options: DumpOptions, path: str) -> LineTemplate:
    """Return the template of the lines of a ``.log`` file.

    Keys and values are not in it where something else makes text of them: then it is the detail of
    a record, as it is of a control record.
    """
    if options.is_json:
        return _json_lines(options, path)
    lines = TemplateBuilder()
    _add_batch(lines)
    if options.is_deep:
        lines.begin_record()
        if options.skips_record_metadata:
            _add_bare_data(lines, options)
        else:
            _add_record(lines, options)
        lines.text("\n")
    return lines.finish()


def _add_batch(lines: TemplateBuilder) -> None:
    with lines.when(columns.IS_V2, 1):
        lines.text("baseOffset: ").number(columns.OFFSET)
        for name, column in _NUMBERS_OF_V2:
            lines.text(f" {name}: ").number(column)
        lines.text(" isTransactional: ").choice(columns.IS_TRANSACTIONAL, *_FLAG)
        lines.text(" isControl: ").choice(columns.IS_CONTROL, *_FLAG)
        lines.text(" deleteHorizonMs: OptionalLong")
        with lines.when(columns.HAS_DELETE_HORIZON, 1):
            lines.text("[").number(columns.BASE_TIMESTAMP).text("]")
        with lines.when(columns.HAS_DELETE_HORIZON, 0):
            lines.text(".empty")
    with lines.when(columns.IS_V2, 0):
        lines.text("offset: ").number(columns.LAST_OFFSET)
    lines.text(" position: ").number(columns.POSITION)
    lines.text(" ").choice(columns.TIMESTAMP_TYPE, *_TIMESTAMP_TYPES)
    lines.text(": ").number(columns.MAX_TIMESTAMP)
    lines.text(" size: ").number(columns.SIZE_BYTES)
    lines.text(" magic: ").number(columns.MAGIC)
    lines.text(" compresscodec: ").choice(columns.CODEC_ID, *_CODECS)
    lines.text(" crc: ").number(columns.CRC)
    lines.text(" isvalid: ").choice(columns.IS_VALID, *_FLAG).text("\n")


def _add_record(lines: TemplateBuilder, options: DumpOptions) -> None:
    lines.text("| offset: ").offset()
    lines.text(" ").choice(columns.TIMESTAMP_TYPE, *_TIMESTAMP_TYPES).text(": ").timestamp()
    lines.text(" keySize: ").key_size().text(" valueSize: ").value_size()
    with lines.when(columns.IS_V2, 1):
        lines.text(" sequence: ").sequence(columns.BASE_SEQUENCE, columns.OFFSET)
        lines.text(" headerKeys: [").header_names(Style.TEXT).text("]")
    with lines.when(columns.IS_V2, 0):
        lines.text(" isValid: ").validity("true", "false").text(" crc: ").crc()
        if options.kafka_version < KafkaVersion.V4_3:
            lines.text("}")  # Kafka's own, and not a brace of ours
    lines.detail()
    if _has_plain_data(options):
        with lines.when(columns.IS_CONTROL, 0):
            with lines.if_key():
                lines.text(" key: ").key(Style.TEXT)
            with lines.if_value():
                lines.text(" payload: ").value(Style.TEXT)


def _add_bare_data(lines: TemplateBuilder, options: DumpOptions) -> None:
    """Add what is left of a record's line with --skip-record-metadata."""
    lines.detail()
    if not _has_plain_data(options):
        return
    with lines.when(columns.IS_CONTROL, 0):
        with lines.if_key():
            lines.text("| key: ").key(Style.TEXT)
            with lines.if_value():
                lines.text(" payload: ").value(Style.TEXT)
        with lines.if_key(is_null=True), lines.if_value():
            lines.text(payload_without_key(options)).value(Style.TEXT)


def payload_without_key(options: DumpOptions) -> str:
    """Return what stands before a payload where a line has neither metadata nor key."""
    return "| payload: " if options.kafka_version >= KafkaVersion.V4_3 else " payload: "


def _has_plain_data(options: DumpOptions) -> bool:
    return options.prints_data and options.decoder is None


def _json_lines(options: DumpOptions, path: str) -> LineTemplate:
    """Return the template of JSON lines: the names of the text, and null where it has nothing."""
    start = f'"path":{encode_basestring_ascii(path)}'
    lines = TemplateBuilder()
    lines.text(f'{{"type":"batch",{start},')
    with lines.when(columns.IS_V2, 1):
        lines.text('"baseOffset":').number(columns.OFFSET)
        for name, column in _NUMBERS_OF_V2:
            lines.text(f',"{name}":').number(column)
        lines.text(',"isTransactional":').choice(columns.IS_TRANSACTIONAL, *_FLAG)
        lines.text(',"isControl":').choice(columns.IS_CONTROL, *_FLAG)
        lines.text(',"deleteHorizonMs":')
        with lines.when(columns.HAS_DELETE_HORIZON, 1):
            lines.number(columns.BASE_TIMESTAMP)
        with lines.when(columns.HAS_DELETE_HORIZON, 0):
            lines.text("null")
    with lines.when(columns.IS_V2, 0):
        lines.text('"lastOffset":').number(columns.LAST_OFFSET)
    lines.text(',"position":').number(columns.POSITION)
    lines.text(',"timestampType":"').choice(columns.TIMESTAMP_TYPE, *_TIMESTAMP_TYPES)
    lines.text('","maxTimestamp":').number(columns.MAX_TIMESTAMP)
    lines.text(',"size":').number(columns.SIZE_BYTES).text(',"magic":').number(columns.MAGIC)
    lines.text(',"compresscodec":"').choice(columns.CODEC_ID, *_CODECS)
    lines.text('","crc":').number(columns.CRC)
    lines.text(',"isvalid":').choice(columns.IS_VALID, *_FLAG).text("}\n")
    if options.is_deep:
        lines.begin_record().text(f'{{"type":"record",{start},"offset":').offset()
        if not options.skips_record_metadata:
            _add_json_metadata(lines)
        lines.detail()
        if _has_plain_data(options):
            _add_json_data(lines, options)
        lines.text("}\n")
    return lines.finish()


def _add_json_metadata(lines: TemplateBuilder) -> None:
    lines.text(',"timestamp":').timestamp()
    lines.text(',"timestampType":"').choice(columns.TIMESTAMP_TYPE, *_TIMESTAMP_TYPES)
    lines.text('","keySize":').key_size().text(',"valueSize":').value_size()
    with lines.when(columns.IS_V2, 1):
        lines.text(',"sequence":').sequence(columns.BASE_SEQUENCE, columns.OFFSET)
        lines.text(',"headerKeys":[').header_names(Style.JSON).text("]")
    with lines.when(columns.IS_V2, 0):
        lines.text(',"isValid":').validity("true", "false").text(',"crc":').crc()


def _add_json_data(lines: TemplateBuilder, options: DumpOptions) -> None:
    is_text = options.values == "text"
    style = Style.JSON if is_text else Style.BASE64
    with lines.when(columns.IS_CONTROL, 0):
        lines.text(',"values":"text","key":' if is_text else ',"key":')
        with lines.if_key():
            lines.key(style)
        with lines.if_key(is_null=True):
            lines.text("null")
        lines.text(',"payload":')
        with lines.if_value():
            lines.value(style)
        with lines.if_value(is_null=True):
            lines.text("null")
