"""One Avro type that has the fields of several: what all versions of a subject can be read as."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pylog.typed.avro_schema import AvroField, AvroType

if TYPE_CHECKING:
    from collections.abc import Sequence

_NULL = AvroType("null")
_NUMBERS = ("int", "long", "float", "double")


def merged_type(types: Sequence[AvroType]) -> AvroType:
    """Return a type that values of all types can be read as, the fields of the first one first.

    Fields that not all have may be null. Numbers become the wider one, and what has nothing in
    common becomes a union.
    """
    return reduce(_merged, types)


def _merged(first: AvroType, second: AvroType) -> AvroType:
    if first == second:
        return first
    if "union" in (first.kind, second.kind) or "null" in (first.kind, second.kind):
        return _merged_unions(_branches(first), _branches(second))
    both = _in_common(first, second)
    return _union([first, second]) if both is None else both


def _branches(kind: AvroType) -> tuple[AvroType, ...]:
    return kind.branches if kind.kind == "union" else (kind,)


def _union(branches: Sequence[AvroType]) -> AvroType:
    return branches[0] if len(branches) == 1 else AvroType("union", branches=tuple(branches))


def _merged_unions(first: Sequence[AvroType], second: Sequence[AvroType]) -> AvroType:
    branches = list(first)
    for each in second:
        for place, known in enumerate(branches):
            both = _in_common(known, each)
            if both is not None:
                branches[place] = both
                break
        else:
            branches.append(each)
    has_null = any(each.kind == "null" for each in branches)
    others = [each for each in branches if each.kind != "null"]
    return _union([*([_NULL] if has_null else []), *others])


def _in_common(first: AvroType, second: AvroType) -> AvroType | None:
    """Return the one type that both can be read as; None if a union has to have both."""
    if first == second:
        return first
    if first.logical != second.logical:
        return None
    if first.kind in _NUMBERS and second.kind in _NUMBERS:
        return _wider(first, second)
    return _of_one_kind(first, second) if first.kind == second.kind else None


def _of_one_kind(first: AvroType, second: AvroType) -> AvroType | None:
    if first.kind == "record":
        return _merged_records(first, second)
    if first.kind == "enum":
        more = tuple(each for each in second.symbols if each not in first.symbols)
        return replace(_with_name(first, second), symbols=first.symbols + more)
    if first.kind in ("array", "map") and first.items is not None and second.items is not None:
        return replace(first, items=_merged(first.items, second.items))
    if first.kind == "fixed" and first.size == second.size and first.scale == second.scale:
        precision = max(first.precision, second.precision)
        return replace(_with_name(first, second), precision=precision)
    if first.kind == "bytes" and first.logical and first.scale == second.scale:
        return first if first.precision >= second.precision else second
    return None


def _wider(first: AvroType, second: AvroType) -> AvroType | None:
    kinds = {first.kind, second.kind}
    if kinds <= {"int", "long"}:
        return AvroType("long")
    # A long and a fraction have no type that holds both without loss.
    return None if "long" in kinds else AvroType("double")


def _with_name(first: AvroType, second: AvroType) -> AvroType:
    """Return the first type, which goes by the name of the second one, too."""
    return replace(first, aliases=(*first.aliases, *second.aliases, second.name))


def _merged_records(first: AvroType, second: AvroType) -> AvroType:
    known = {each.name: each for each in second.fields}
    fields = []
    for each in first.fields:
        names = [name for name in (each.name, *each.aliases) if name in known]
        if not names:
            fields.append(_nullable(each))
            continue
        other = known.pop(names[0])
        aliases = tuple(dict.fromkeys((*each.aliases, *other.aliases)))
        kind = _merged(each.type, other.type)
        merged = AvroField(each.name, kind, aliases=aliases)
        is_optional = each.default is None and _is_nullable(kind)
        fields.append(replace(merged, default=None) if is_optional else merged)
    fields += [_nullable(each) for each in known.values()]
    return replace(_with_name(first, second), fields=tuple(fields))


def _is_nullable(kind: AvroType) -> bool:
    return any(each.kind == "null" for each in _branches(kind))


def _nullable(wanted: AvroField) -> AvroField:
    """Return a field that is null where a writer does not have it."""
    kind = wanted.type
    if not _is_nullable(kind):
        kind = _union([_NULL, *_branches(kind)])
    return replace(wanted, type=kind, default=None)
