"""Files that schemas import without bringing them: Google's, and Confluent's.

Source: google/protobuf/*.proto of Protobuf 32; confluent/meta.proto and
confluent/type/decimal.proto of Confluent's Schema Registry 8.
"""

from __future__ import annotations

_HEAD = 'syntax = "proto3"; package google.protobuf; '
_WRAPPED = ("double", "float", "int64", "uint64", "int32", "uint32", "bool", "string", "bytes")
_NAMES = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
_WRAPPERS = "".join(
    f"message {name}Value {{ {kind} value = 1; }} "
    for name, kind in zip(_NAMES, _WRAPPED, strict=True)
)
_STRUCT = """
message Struct { map<string, Value> fields = 1; }
message Value {
  oneof kind {
    NullValue null_value = 1; double number_value = 2; string string_value = 3;
    bool bool_value = 4; Struct struct_value = 5; ListValue list_value = 6;
  }
}
enum NullValue { NULL_VALUE = 0; }
message ListValue { repeated Value values = 1; }
"""

TEXTS = {
    **{
        f"google/protobuf/{name}.proto": f"{_HEAD}{text}"
        for name, text in {
            "any": "message Any { string type_url = 1; bytes value = 2; }",
            "duration": "message Duration { int64 seconds = 1; int32 nanos = 2; }",
            "empty": "message Empty {}",
            "field_mask": "message FieldMask { repeated string paths = 1; }",
            "struct": _STRUCT,
            "timestamp": "message Timestamp { int64 seconds = 1; int32 nanos = 2; }",
            "wrappers": _WRAPPERS,
            "descriptor": "",  # for options, which are passed over
        }.items()
    },
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;',
    "confluent/type/decimal.proto": (
        'syntax = "proto3"; package confluent.type; '
        "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
    ),
}
"""By the name that they are imported by."""

WRAPPERS = frozenset(f"google.protobuf.{name}Value" for name in _NAMES)
TIMESTAMP = "google.protobuf.Timestamp"
DURATION = "google.protobuf.Duration"
JSON_VALUES = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
DECIMAL = "confluent.type.Decimal"
