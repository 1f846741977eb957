"""Of which message a payload is, in each encoding that is met."""

from __future__ import annotations

import pytest

from pylog.typed.known_schemas import KnownSchema
from pylog.typed.protobuf_format import ProtobufReader
from pylog.typed.protobuf_indexes import MessageIndexes
from pylog.typed.protobuf_text import parse_proto
from pylog.typed.wire_formats import Framing
from tests.support.payloads import payloads_of

FILE = parse_proto(
    """
    package p;
    message A {}
    message B { message C { message D {} } message E {} }
    message F {}
    """
)


def found(encoding: str, *contents: bytes) -> list[tuple[str | None, int]]:
    """Return each payload's message, and where it starts in the payload."""
    given = payloads_of(contents)
    places: dict[int, tuple[str | None, int]] = {}
    for group in MessageIndexes(FILE, encoding).split(given):
        assert (group.name is None) == bool(group.reason) or group.name == "p.A"
        for row, start in zip(group.rows.tolist(), group.starts.tolist(), strict=True):
            places[row] = group.name, start - int(given.starts[row])
    return [places[row] for row in range(len(contents))]


# As `docs` of Confluent and sections of their sources have them: [0], [2], [1, 0], [1, 0, 0].
@pytest.mark.parametrize(
    ("encoding", "content", "expected"),
    [
        ("spec", b"\0rest", ("p.A", 1)),
        ("spec", b"\x02\x04rest", ("p.F", 2)),
        ("spec", b"\x02\0rest", ("p.A", 2)),
        ("spec", b"\x04\x02\0rest", ("p.B.C", 3)),
        ("spec", b"\x06\x02\0\0rest", ("p.B.C.D", 4)),
        ("spec", b"\x04\x02\x02", ("p.B.E", 3)),
        ("plain", b"\0rest", ("p.A", 1)),
        ("plain", b"\x02\x01\x01rest", ("p.B.E", 3)),
        ("plain", b"\x01\x02rest", ("p.F", 2)),
        ("reverse", b"\x06\0\0\x02rest", ("p.B.C.D", 4)),
        ("none", b"\0rest", ("p.A", 0)),
        ("glue", b"\0", ("p.A", 1)),
        ("glue", b"\x03rest", ("p.B.C.D", 1)),
        ("glue", b"\x05rest", ("p.F", 1)),
        ("ref", b"\x05\x0a\x03p.Frest", ("p.F", 6)),
        ("ref", b"\x03\x0a\x01Frest", ("p.F", 4)),
        ("spec", b"\x05\x0a\x03p.Brest", ("p.B", 6)),
        ("spec", b"\x01\x02rest", ("p.F", 2)),
        ("spec", b"\x04\x01\x02", (None, 0)),
        ("spec", b"", (None, 0)),
        ("spec", b"\xff\xff\xff\xff\x0f", (None, 0)),
        ("glue", b"\x06", (None, 0)),
    ],
)
def test_an_index_names_a_message(
    encoding: str, content: bytes, expected: tuple[str | None, int]
) -> None:
    assert found(encoding, content) == [expected]
    assert found(encoding, b"\0", content, content, b"\x00") == [
        found(encoding, b"\0")[0], expected, expected, found(encoding, b"\0")[0],
    ]  # fmt: skip


def test_an_index_that_names_nothing_is_shown() -> None:
    (group,) = MessageIndexes(FILE, "spec").split(payloads_of([b"\x0eabc"]))
    assert (
        group.reason
        == "before the message stands 0e 61 62 63, which names no message of the schema"
    )


def test_long_prefixes_that_begin_alike_are_told_apart() -> None:
    name = "p." + "N" * 30
    file = parse_proto(f"package p; message {'N' * 30} {{}} message {'N' * 29}M {{}}")
    contents = [
        b"\x22\x0a\x20" + name.encode() + b"x",
        b"\x22\x0a\x20" + name[:-1].encode() + b"Mx",
    ]
    groups = MessageIndexes(file, "ref").split(payloads_of(contents))
    assert sorted(str(group.name) for group in groups) == [f"{name[:-1]}M", name]


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ValueError, match="message indexes are 'x', expected one of spec"):
        MessageIndexes(FILE, "x")


MAPS = """
    package p;
    message A {
      map<string, int64> of_a = 1; message B {} map<string, C> cs = 2; message C {} message D {}
    }
"""
# protoc gives A the messages OfAEntry, B, CsEntry, C and D, in this order.
COUNTED = [None, "p.A.B", None, "p.A.C", "p.A.D", None]
LEFT_OUT = ["p.A.B", "p.A.C", "p.A.D", None, None, None]


def within_a(text: str, encoding: str, index: int) -> tuple[str | None, str]:
    content = bytes([4, 0, 2 * index])
    (group,) = MessageIndexes(parse_proto(text), encoding).split(payloads_of([content]))
    return group.name, group.reason


@pytest.mark.parametrize("index", range(6))
def test_entries_of_maps_count_as_messages_or_do_not(index: int) -> None:
    counted, left_out = COUNTED[index], LEFT_OUT[index]
    assert within_a(MAPS, "maps", index)[0] == counted
    assert within_a(MAPS, "no-maps", index)[0] == left_out
    name, reason = within_a(MAPS, "spec", index)
    if counted and left_out:
        assert name is None
        assert f"it is a {counted} if the entries of maps count" in reason
        assert f"and a {left_out} if not" in reason
    else:
        assert name == (counted or left_out)


def test_apicurios_name_may_be_confluents_indexes() -> None:
    text = """
        package p;
        message A {} message B {} message C {} message D {} message No {}
        message F { message G {} message H {} }
    """
    content = b"\x04\x0a\x02No"
    for encoding, expected in {"maps": "p.F.H", "ref": "p.No"}.items():
        (group,) = MessageIndexes(parse_proto(text), encoding).split(payloads_of([content]))
        assert group.name == expected
    (group,) = MessageIndexes(parse_proto(text), "spec").split(payloads_of([content]))
    assert group.name is None
    assert "it is a p.F.H by Confluent's indexes, and a p.No by Apicurio's name" in group.reason


@pytest.mark.parametrize("index", range(6))
def test_entries_that_a_registrys_text_shows_count(index: int) -> None:
    entry = "{ option map_entry = true; string key = 1; int64 value = 2; }"
    text = f"""
        package p;
        message A {{
          repeated OfAEntry of_a = 1; repeated .p.A.CsEntry cs = 2;
          message OfAEntry {entry} message B {{}} message CsEntry {entry}
          message C {{}} message D {{}}
        }}
    """
    name, _ = within_a(text, "spec", index)
    assert name == COUNTED[index]


DESCRIPTOR = (
    "CgdhLnByb3RvEgFwIlwKAUESGwoEb2ZfYRgBIAMoCzINLnAuQS5PZkFFbnRyeRoqCghPZkFFbnRyeRILCgNrZXkYASAB"
    "KAkSDQoFdmFsdWUYAiABKAM6AjgBGg4KAUISCQoBehgBIAEoBWIGcHJvdG8z"
)


def test_confluents_serializer_counts_the_entries_of_maps() -> None:
    # By ProtobufSerializer of confluent-kafka 2.16.1, of the message B of this file:
    # package p; message A { map<string, int64> of_a = 1; message B { int32 z = 1; } }
    content = bytes.fromhex("0400020807")
    schema = KnownSchema(1, "PROTOBUF", DESCRIPTOR, message="p.A.B")
    decoder = ProtobufReader(schema).decoder(schema, Framing.CONFLUENT)
    assert decoder.decode(payloads_of([content])).values.to_pylist() == [{"z": 7}]
