from __future__ import annotations

import tracemalloc

import pytest

from pylog.columnar.json_path import JsonPath, Member

DOCUMENT = (
    b'{"user":{"id":7,"name":"Ann","roles":["admin","dev"]},"n":1.0,"big":100000000000000000001,'
    b'"none":null,"ok":true,"a b":1,"it\'s":2,"items":[{"id":1},{"id":2}],"empty":""}'
)


@pytest.mark.parametrize(
    "path",
    [
        "$",
        "$.user.id",
        "$.user.id=7",
        "$.user.id=7.0",
        "$.user.name=Ann",
        '$.user.name="Ann"',
        "$['user'].name=Ann",
        '$["user"]["name"]',
        "$.user.roles[0]=admin",
        "$.user.roles[-1]=dev",
        "$.user.roles[*]=dev",
        "$.user.*=7",
        '$.user.roles=["admin", "dev"]',
        "$.n=1",
        "$.big=100000000000000000001",
        "$.none",
        "$.none=null",
        "$.ok=true",
        "$['a b']=1",
        r"$['it\'s']=2",
        "$.items[*].id=2",
        '$.items[0]={"id":1.0}',
        "$.empty=",
    ],
)
def test_a_value_with_that_at_the_path_passes(path: str) -> None:
    assert JsonPath.parse(path).holds(DOCUMENT)


@pytest.mark.parametrize(
    "path",
    [
        "$.user.missing",
        "$.user.id=8",
        '$.user.id="7"',
        "$.user.roles[2]",
        "$.user.roles[-3]",
        "$.user.roles.admin",
        "$.user[0]",
        "$.n=true",
        "$.ok=1",
        "$.ok=True",
        "$.none=none",
        "$.big=100000000000000000000",
        "$.user.roles=[true]",
        "$.items[*].id=3",
        "$.items.*.name",
    ],
)
def test_any_other_value_does_not(path: str) -> None:
    assert not JsonPath.parse(path).holds(DOCUMENT)


@pytest.mark.parametrize(
    ("path", "passes"),
    [
        ("$.user.id>=7", True),
        ("$.user.id>=7.0", True),
        ("$.user.id>=7.001", False),
        ("$.user.id>7", False),
        ("$.user.id>-8e3", True),
        ("$.user.id<=7", True),
        ("$.user.id<7", False),
        ("$.user.id<70e-1", False),
        ("$.user.id!=7.0", False),
        ("$.user.id!=8", True),
        ('$.user.id!="7"', True),
        ("$.big>100000000000000000000", True),
        ("$.big<100000000000000000002", True),
        ("$.big>1e20", True),
        ("$.big<=100000000000000000001.0", True),
        ("$.big>100000000000000000001", False),
        ("$.user.name>=Ann", True),
        ("$.user.name>Ann", False),
        ("$.user.name<Anna", True),
        ("$.user.name<B", True),
        ('$.empty<"0"', True),
        ("$.empty<0", False),  # a string and a number
        ('$.user.id<"8"', False),
        ('$.user.id>"8"', False),
        ("$.ok>0", False),  # to Python, true would be 1
        ("$.ok<2", False),
        ("$.ok!=1", True),
        ("$.none!=null", False),
        ("$.none<1", False),
        ("$.none>=0", False),
        ("$.missing!=1", False),
        ("$.missing<1", False),
        ("$.items[*].id>1", True),
        ("$.items[*].id>2", False),
        ("$.items[*].id!=1", True),
        ("$.items[0].id!=1", False),
        ("$.user.roles!=[]", True),
        ('$.user.roles!=["admin","dev"]', False),
        ("$.user!=7", True),
        ("$.user>7", False),
        ("$>0", False),
        ("$!=0", True),
    ],
)
@pytest.mark.parametrize("is_large", [False, True])
def test_places_are_compared(
    monkeypatch: pytest.MonkeyPatch, path: str, *, passes: bool, is_large: bool
) -> None:
    """Also in a document that is not made into objects as a whole."""
    if is_large:
        monkeypatch.setattr("pylog.columnar.json_path._MOST_PARSED", 0)
    assert JsonPath.parse(path).holds(DOCUMENT) is passes


@pytest.mark.parametrize(
    ("number", "passing", "failing"),
    [
        ("1e9999999999999999999", [">1e999999999", ">=0", "!=7"], ["<1e999999999", "=0", "<=0"]),
        ("-1E+9999999999999999999", ["<-1e999999999", "<=0", "!=7"], [">-1e9", ">0", "=0"]),
        ("1e-9999999999999999999", [">0", "<1e-999999999", "!=0"], ["<=0", "=0", ">1e-9"]),
        ("-0.1e-9999999999999999999", ["<0", ">-1e-999999999", "!=0"], [">=0", "=0", "<-1e-9"]),
        ("0.00e9999999999999999999", [">=0", "<=0", "=0"], [">0", "<0", "!=0"]),
    ],
)
def test_numbers_beyond_those_that_are_read_are_compared_too(
    number: str, passing: list[str], failing: list[str]
) -> None:
    document = f'{{"n":{number}}}'.encode()
    for comparisons, passes in ((passing, True), (failing, False)):
        for comparison in comparisons:
            assert JsonPath.parse(f"$.n{comparison}").holds(document) is passes, comparison


@pytest.mark.parametrize(
    "text",
    [
        "$.at<2026-11-01",  # a string, since it is not JSON
        '$.a="=7"',
        "$.b=it's",
        "$.c= 7 ",
    ],
)
def test_what_is_not_json_is_a_string(text: str) -> None:
    document = b'{"at":"2026-10-31T23:59Z","a":"=7","b":"it\'s","c":7}'
    assert JsonPath.parse(text).holds(document)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("$.a==7", '"=7"'),
        ("$.a='new'", "\"'new'\""),
        ("$.a= new", '" new"'),
        ("$.a=new ", '"new "'),
        ("$.a>=='7'", "\"='7'\""),
    ],
)
def test_a_string_that_hardly_a_value_has_is_refused(text: str, quoted: str) -> None:
    with pytest.raises(ValueError, match=r"write =(7|new), or =") as refused:
        JsonPath.parse(text)
    assert f", or ={quoted} if" in str(refused.value)


@pytest.mark.parametrize("path", ["$.a<true", "$.a>=null", "$.a>[1]", '$.a<={"b":1}'])
def test_only_numbers_and_strings_have_an_order(path: str) -> None:
    with pytest.raises(ValueError, match=r"only numbers and strings are less or greater; use = or"):
        JsonPath.parse(path)


@pytest.mark.parametrize("comparison", ["!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("value", ["7", "Ann"])
def test_for_comparisons_names_alone_are_looked_for(comparison: str, value: str) -> None:
    assert JsonPath.parse(f"$.user.id{comparison}{value}").required == (
        JsonPath.parse("$.user.id").required
    )


def test_spans_are_where_the_places_that_pass_are() -> None:
    text = '{"a":[5, 17, "x", {"b":1}]}'
    assert list(JsonPath.parse("$.a[*]>=5").spans(text)) == [(6, 7), (9, 11)]
    assert list(JsonPath.parse("$.a[*]!=5").spans(text)) == [(9, 11), (13, 16), (18, 25)]
    assert list(JsonPath.parse("$.a[3]").spans(text)) == [(18, 25)]


@pytest.mark.parametrize(
    "value",
    [None, b"", b"text", b"\xff", b"{", b"[NaN]", b"Infinity", b"[" * 100_000, b"\xef\xbb\xbf{}"],
)
def test_what_is_not_json_has_no_places(value: bytes | None) -> None:
    assert not JsonPath.parse("$").holds(value)


DEEP = b'{"deep":' + b"[" * 100_000 + b"]" * 100_000 + b","
LONG = b'{"long":[' + b"[]," * 1_100_000 + b"0],"
ABSURD = b'{"n":1e9999999999999999999,'


@pytest.mark.parametrize("beginning", [DEEP, ABSURD, b"{"])
@pytest.mark.parametrize(
    ("path", "passes"),
    [
        ("$.user.id=7", True),
        ("$.user.id=8", False),
        ("$.user.roles[-1]=dev", True),
        ("$.user.roles[-3]", False),
        ("$.user.roles[1]=dev", True),
        ("$.user.roles[2]", False),
        ("$.user.*=Ann", True),
        ("$.items[*].id=2", True),
        ("$.items[*].id=3", False),
        ('$.items=[{"id":1},{"id":2.0}]', True),
        ("$.user={}", False),
        ("$.again=2", True),
        ("$.again=1", False),
        ("$.missing", False),
    ],
)
@pytest.mark.thorough(one_in=5)
def test_no_member_hides_another(
    monkeypatch: pytest.MonkeyPatch, beginning: bytes, path: str, *, passes: bool
) -> None:
    if beginning == b"{":
        monkeypatch.setattr("pylog.columnar.json_path._MOST_PARSED", 0)
    members = b'"again":1,"again" : 2 ,' + DOCUMENT.lstrip(b"{")
    assert JsonPath.parse(path).holds(beginning + members) is passes


@pytest.mark.parametrize(
    "end", [b"", b"]", b"}}", b"} x", b",}", b'"a"}', b'"a":}', b'"a" 1}', b"1}"]
)
def test_what_is_nested_deeply_is_json_as_a_whole_or_not_at_all(end: bytes) -> None:
    assert not JsonPath.parse("$.deep").holds(DEEP + end)


@pytest.mark.thorough
def test_memory_does_not_grow_with_the_number_of_values() -> None:
    value = LONG + b'"id":7}'
    path = JsonPath.parse("$.id=7")
    tracemalloc.start()
    try:
        assert path.holds(value)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(value)


def test_numbers_of_any_length_are_read() -> None:
    assert JsonPath.parse("$[0]").holds(b"[" + b"9" * 10_000 + b"]")
    assert JsonPath.parse("$[0]").holds(b"[1e99999999]")


@pytest.mark.parametrize(
    "text", ["", "user", "$user", "$.", "$.a[", "$.a[x]", "$..a", "$['a]", "$.a!7", "$.a!"]
)
def test_what_is_not_a_path_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be read from .* on: expected a path such as"):
        JsonPath.parse(text)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        ("", b""),
        ("=7", b"7"),
        ("=1e2", b"100"),
        ("=-1.50", b"-1.5"),
        ("=10", b"10"),
        ("=100.0", b"100"),
        ("=-0.0", b"0"),
        ("=0e2000", b""),
        ("=1e2000", b""),
        ("=1e-2000", b""),
        (f"={'1' * 2_000}", b""),
        ("=1e-3", b"0.001"),
        ("=Ann", b'"Ann"'),
        ('="42"', b'"42"'),
        (r'="\u0041"', b'"A"'),
        ("=true", b"t"),
        ("=null", b"n"),
        ("=[1, 2]", b"["),
        ('={"a":1}', b"{"),
    ],
)
def test_a_member_is_looked_for_with_the_beginning_of_its_value(
    expected: str, value: bytes
) -> None:
    member, *_ = JsonPath.parse(f"$.id{expected}").required[-1]
    assert member == Member(b'"id"', value)


@pytest.mark.parametrize(
    ("text", "spellings"),
    [
        ("id", {rb"\u006"}),
        ("a/b", {rb"\u002", rb"\u006", rb"\/"}),
        ("Zü", {rb"\u005", rb"\u00"}),
        ("😀", {rb"\u"}),
        ("", set()),
        ("".join(map(chr, range(0x1000, 0x3000, 0x100))), {b"\\"}),
    ],
)
def test_a_name_is_spelled_as_it_is_or_has_one_of_these(text: str, spellings: set[bytes]) -> None:
    [(plain, *others)] = JsonPath.parse(f"$['{text}'][0]").required
    assert (plain, set(others)) == (f'"{text}"'.encode(), spellings)
