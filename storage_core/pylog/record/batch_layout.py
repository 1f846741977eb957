"""Where the fields of batches and messages lie.

Every entry of a ``.log`` file begins alike, whatever its format, all integers big-endian::

    position  width  field
           0      8  offset      v0/v1: of the message, for a compressed wrapper of its LAST
                                 inner message; v2: base offset = FIRST offset of the batch
           8      4  size        bytes that follow this field
          12      4  v0/v1: CRC  v2: partition leader epoch
          16      1  magic       0, 1 or 2

A segment is a concatenation of entries; there is no file header, footer or padding, and formats
may be mixed in one file. A v0/v1 message goes on::

          17      1  attributes  bits 0-2 codec, bit 3 timestamp type (v1)
          18      8  timestamp   v1 only
       18/26      4  key length  negative: null
       22/30      K  key
     22/30+K      4  value length, negative: null
     26/34+K      V  value       for a wrapper: the compressed message set

and its CRC-32 (IEEE) covers byte 16 to the end. A v2 batch goes on::

          17      4  CRC-32C over byte 21 to the end
          21      2  attributes  see below
          23      4  last offset delta
          27      8  base timestamp (or delete horizon)
          35      8  max timestamp
          43      8  producer id
          51      2  producer epoch
          53      4  base sequence
          57      4  records count
          61      …  records; one compressed stream if a codec is set

Base offset, size, leader epoch, magic and the CRC itself lie outside the checksum.

Source: DefaultRecordBatch, LegacyRecord, Records (Kafka 3.9 and 4.3); KIP-98, KIP-32.
"""

from __future__ import annotations

OFFSET_OFFSET = 0
OFFSET_LENGTH = 8
SIZE_OFFSET = OFFSET_OFFSET + OFFSET_LENGTH
SIZE_LENGTH = 4
LOG_OVERHEAD = SIZE_OFFSET + SIZE_LENGTH
MAGIC_OFFSET = 16
MAGIC_LENGTH = 1
HEADER_SIZE_UP_TO_MAGIC = MAGIC_OFFSET + MAGIC_LENGTH

# v2
PARTITION_LEADER_EPOCH_OFFSET = LOG_OVERHEAD
PARTITION_LEADER_EPOCH_LENGTH = 4
CRC_OFFSET = MAGIC_OFFSET + MAGIC_LENGTH
CRC_LENGTH = 4
ATTRIBUTES_OFFSET = CRC_OFFSET + CRC_LENGTH
ATTRIBUTES_LENGTH = 2
LAST_OFFSET_DELTA_OFFSET = ATTRIBUTES_OFFSET + ATTRIBUTES_LENGTH
LAST_OFFSET_DELTA_LENGTH = 4
BASE_TIMESTAMP_OFFSET = LAST_OFFSET_DELTA_OFFSET + LAST_OFFSET_DELTA_LENGTH
BASE_TIMESTAMP_LENGTH = 8
MAX_TIMESTAMP_OFFSET = BASE_TIMESTAMP_OFFSET + BASE_TIMESTAMP_LENGTH
MAX_TIMESTAMP_LENGTH = 8
PRODUCER_ID_OFFSET = MAX_TIMESTAMP_OFFSET + MAX_TIMESTAMP_LENGTH
PRODUCER_ID_LENGTH = 8
PRODUCER_EPOCH_OFFSET = PRODUCER_ID_OFFSET + PRODUCER_ID_LENGTH
PRODUCER_EPOCH_LENGTH = 2
BASE_SEQUENCE_OFFSET = PRODUCER_EPOCH_OFFSET + PRODUCER_EPOCH_LENGTH
BASE_SEQUENCE_LENGTH = 4
RECORDS_COUNT_OFFSET = BASE_SEQUENCE_OFFSET + BASE_SEQUENCE_LENGTH
RECORDS_COUNT_LENGTH = 4
RECORDS_OFFSET = RECORDS_COUNT_OFFSET + RECORDS_COUNT_LENGTH
RECORD_BATCH_OVERHEAD = RECORDS_OFFSET

# v0 and v1
LEGACY_CRC_OFFSET = LOG_OVERHEAD
LEGACY_CRC_LENGTH = 4
LEGACY_ATTRIBUTES_OFFSET = MAGIC_OFFSET + MAGIC_LENGTH
LEGACY_ATTRIBUTES_LENGTH = 1
LEGACY_TIMESTAMP_OFFSET = LEGACY_ATTRIBUTES_OFFSET + LEGACY_ATTRIBUTES_LENGTH
LEGACY_TIMESTAMP_LENGTH = 8
KEY_SIZE_OFFSET_V0 = LEGACY_TIMESTAMP_OFFSET
KEY_SIZE_OFFSET_V1 = LEGACY_TIMESTAMP_OFFSET + LEGACY_TIMESTAMP_LENGTH
KEY_SIZE_LENGTH = 4
VALUE_SIZE_LENGTH = 4
RECORD_OVERHEAD_V0 = 14
RECORD_OVERHEAD_V1 = 22
MIN_ENTRY_SIZE_V0 = LOG_OVERHEAD + RECORD_OVERHEAD_V0
MIN_ENTRY_SIZE_V1 = LOG_OVERHEAD + RECORD_OVERHEAD_V1
MIN_ENTRY_SIZES = (MIN_ENTRY_SIZE_V0, MIN_ENTRY_SIZE_V1, RECORD_BATCH_OVERHEAD)
"""By magic: what the smallest batch or message takes, and bytes enough to parse a header."""

# attributes
COMPRESSION_CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_FLAG_MASK = 0x10
CONTROL_FLAG_MASK = 0x20
DELETE_HORIZON_FLAG_MASK = 0x40

MIN_RECORD_SIZE_V2 = 7
"""Bytes of the smallest v2 record: one each for length, attributes, timestamp delta, offset
delta, key length, value length and header count. Bounds a batch's record count by its bytes."""

MAGIC_VALUE_V0 = 0
MAGIC_VALUE_V1 = 1
MAGIC_VALUE_V2 = 2
