"""What one schema writes and another one reads, as a program for the kernel that decodes Avro.

Resolution follows the specification: by name and alias, with promotions, defaults and the rules for
unions; of a union's types the one that is the writer's own comes before those it can be promoted
to. Names of records need not agree outside of unions, as in Java. Logical types that are read as
others are an error, unless they are times of a finer unit.

Source: Avro specification 1.12, "Schema Resolution"; Resolver, Schema.applyAliases (Avro's Java
library 1.12).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.errors import InvalidSchemaError
from pylog.kernels import decode_avro as op
from pylog.typed.avro_columns import AvroColumn, Form, Layout, common_number
from pylog.typed.avro_defaults import encoded_default
from pylog.typed.avro_schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from pylog.typed.avro_schema import AvroField, AvroType

MOST_STEPS = 100_000
"""As of `avro_columns.MOST_BUFFERS`: of what no memory is lost to one schema."""

_INT = (-(1 << 31), (1 << 31) - 1)
_LONG = (-(1 << 63), (1 << 63) - 1)
_DAY_MS = 24 * 60 * 60 * 1000
_PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_NUMBERS = {"int": op.AS_INT, "long": op.AS_LONG, "float": op.AS_FLOAT, "double": op.AS_DOUBLE}
_UNITS = {"millis": 1, "micros": 1000, "nanos": 1_000_000}
_TARGETS = (
    *((op.NULLABLE, 2), (op.JUMP, 1), (op.BLOCK, 3), (op.SKIP_BLOCK, 3)),
    *((op.NEXT_ITEM, 6), (op.SKIP_ITEM, 6)),
)
"""Operations whose argument is a step, and which one."""
_WITH_SPAN = (op.ENUM, op.STRING, op.BYTES, op.FIXED_BYTES, op.REST, op.FILL_SPAN)
_WITH_BUFFER = (
    *(op.LONG, op.INT, op.NUMBER, op.DECIMAL, op.BLOCK, op.FLOAT, op.FLOAT_AS_DOUBLE, op.DOUBLE),
    *(op.BOOLEAN, op.FIXED, op.FIXED_DECIMAL, op.PRESENT, op.ABSENT, op.FILL, op.FILL_ENDS),
    *_WITH_SPAN,
)
_SKIPPED_SIZES = {"boolean": 1, "float": 4, "double": 8}


class _Later(NamedTuple):
    """The branch of a union that is null, whose steps come at the end."""

    nullable: int
    writer: AvroType
    reader: AvroType
    column: AvroColumn
    path: list[str]


class AvroProgram:
    """Steps that decode what a writer's schema wrote into the columns of a reader's.

    Attributes
    ----------
    layout
        The columns.
    jumps, constants, literals
        As the kernel takes them, beside `placed` steps.
    fill_step
        Where the steps start that leave a null.
    depth
        How deep arrays and maps are nested, skipped ones included.
    paths
        Of each step the path of what it reads; ``[]`` stands for the place in an array.
    refusals
        Why a step refuses to decode, by step.
    incompatibilities
        What a value of the writer's may have that the reader cannot read, with paths; types that
        have other names, too, though records are read nevertheless.
    """

    def __init__(self, writer: AvroType, reader: AvroType, *, is_raw_bytes: bool = False) -> None:
        self.layout = Layout(reader)
        self.depth = 0
        self.paths: list[str] = []
        self.refusals: dict[int, str] = {}
        self.incompatibilities: list[str] = []
        self._steps: list[list[int]] = []
        self._jumps: list[int] = []
        self._constants: list[int] = []
        self._literals = bytearray()
        self._path: list[str] = []
        self._nesting = 0
        self._nullable = -1  # the last step that may make a value present
        self._later: list[tuple[_Later, int]] = []
        root = self.layout.root
        if is_raw_bytes:
            self._emit_rest(reader, root)
        else:
            self._resolve(writer, reader, root)
        self._step(op.END)
        self._add_nulls()
        self.fill_step = self._fill(root)
        self._step(op.END_FILL)
        self._table = np.array(self._steps, dtype=np.int64)
        # From here on, steps are where they lie in bytes.
        for operation, column in _TARGETS:
            self._table[self._table[:, 0] == operation, column] *= op.STEP_BYTES
        self.fill_step *= op.STEP_BYTES
        self.jumps = np.array(self._jumps or [0], dtype=np.int64) * op.STEP_BYTES
        self._buffers = np.isin(self._table[:, 0], _WITH_BUFFER)
        self._nullables = (self._table[:, 0] == op.NULLABLE) & (self._table[:, 3] > 0)
        self._spans = np.isin(self._table[:, 0], _WITH_SPAN)
        self.constants = np.array(self._constants or [0], dtype=np.int64)
        self.literals: npt.NDArray[np.uint8] = np.frombuffer(
            bytes(self._literals) + bytes(8), dtype=np.uint8
        )

    def placed(
        self, bases: npt.NDArray[np.int64], span_bases: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.uint8]:
        """Return the steps with the places of buffers in memory instead of their numbers."""
        table = self._table.copy()
        numbers = table[:, 1].copy()
        table[self._buffers, 1] = bases[numbers[self._buffers]]
        table[self._spans, 7] = span_bases[numbers[self._spans]]
        table[self._nullables, 3] = bases[table[self._nullables, 3] - 1] + 1
        return table.reshape(-1).view(np.uint8)

    # Making steps.

    def _step(self, operation: int, *arguments: int) -> int:
        """Add a step, and return its number."""
        if len(self._steps) == MOST_STEPS:
            raise InvalidSchemaError(f"it takes more than {MOST_STEPS} steps to decode the schema")
        padding = op.STEP_WORDS - 1 - len(arguments)
        self._steps.append([operation, *arguments, *[0] * padding])
        self.paths.append("".join(self._path).removeprefix("."))
        return len(self._steps) - 1

    def _add_nulls(self) -> None:
        """Add what nullable values do if they are null: apart, so that others need not jump."""
        for later, back in self._later:
            self._steps[later.nullable][2] = self._next
            self._path = later.path
            self._resolve(later.writer, later.reader, later.column)
            self._step(op.JUMP, back)

    @property
    def _next(self) -> int:
        return len(self._steps)

    @contextmanager
    def _at(self, part: str) -> Iterator[None]:
        self._path.append(part)
        yield
        self._path.pop()

    def _fail(self, reason: str) -> None:
        self.refusals[self._step(op.FAIL)] = reason
        self._note(reason)

    def _note(self, reason: str) -> None:
        path = "".join(self._path).removeprefix(".")
        self.incompatibilities.append(f"{path}: {reason}" if path else reason)

    def _literal(self, content: bytes) -> tuple[int, int]:
        start = len(self._literals)
        self._literals += content
        return start, len(content)

    def _fill(self, column: AvroColumn) -> int:
        """Add steps that leave a null, or nothing at all, in a slot; return the first."""
        first = self._next
        if column.validity is not None:
            self._step(op.ABSENT, column.validity)
        if column.form in ("record", "union"):
            for child in column.children:
                self._fill(child)
        elif column.form in ("list", "map"):
            self._step(op.FILL_ENDS, column.data, column.items_level)
        elif column.form == "leaf":
            form, _, size = self.layout.buffers[column.data]
            if form is Form.SPANS:
                self._step(op.FILL_SPAN, column.data)
            elif form is Form.BITS:
                self._step(op.ABSENT, column.data)
            else:
                unit = {Form.FIXED: 1, Form.WORDS: 8}.get(form, 4 if size == 4 else 1)
                self._step(op.FILL, column.data, size, unit)
        return first

    # Resolution.

    def _resolve(self, writer: AvroType, reader: AvroType, column: AvroColumn) -> None:
        if writer.kind == "union":
            self._resolve_union(writer, reader, column)
        elif reader.kind == "union":
            self._resolve_into_union(writer, reader, column)
        else:
            self._present(writer, reader, column)

    def _resolve_union(self, writer: AvroType, reader: AvroType, column: AvroColumn) -> None:
        kinds = [each.kind for each in writer.branches]
        if len(kinds) == 2 and "null" in kinds:
            null = kinds.index("null")
            self._nullable = self._step(op.NULLABLE, null)
            later = _Later(self._nullable, writer.branches[null], reader, column, [*self._path])
            self._resolve(writer.branches[1 - null], reader, column)
            self._later.append((later, self._next))
            return
        self._branches(writer, lambda branch: self._resolve(branch, reader, column))

    def _branches(self, writer: AvroType, emit: Callable[[AvroType], None]) -> None:
        first = len(self._jumps)
        self._jumps += [0] * len(writer.branches)
        self._step(op.BRANCH, first, len(writer.branches))
        ends = []
        for number, branch in enumerate(writer.branches):
            self._jumps[first + number] = self._next
            emit(branch)
            ends.append(self._step(op.JUMP))
        for each in ends:
            self._steps[each][1] = self._next

    def _resolve_into_union(self, writer: AvroType, reader: AvroType, column: AvroColumn) -> None:
        chosen = _matching_branch(writer, reader.branches)
        if chosen is None:
            self._fail(f"the writer's {writer} is none of the reader's {reader}")
            return
        if chosen.kind == "null":
            self._fill(column)
        elif column.form == "union":
            if column.validity is not None:
                self._step(op.PRESENT, column.validity)
            members = [each for each in reader.branches if each.kind != "null"]
            for branch, child in zip(members, column.children, strict=True):
                if branch is chosen:
                    self._present(writer, branch, child)
                else:
                    self._fill(child)
        else:
            self._present(writer, chosen, column)

    def _present(self, writer: AvroType, reader: AvroType, column: AvroColumn) -> None:
        """Add the steps of a value that is not null, of types that are no unions."""
        if column.validity is not None and column.form != "null":
            if self._nullable == self._next - 1 >= 0:
                self._steps[self._nullable][3] = column.validity + 1
                self._nullable = -1
            else:
                self._step(op.PRESENT, column.validity)
        if column.form == "null" and column.validity is not None:
            self._step(op.ABSENT, column.validity)
        if writer.kind != reader.kind and reader.kind not in _PROMOTIONS.get(writer.kind, ()):
            self._fail(f"the writer's {writer} cannot be read as {reader}")
        elif reader.kind == "record":
            self._record(writer, reader, column)
        elif reader.kind in ("array", "map"):
            self._repeated(writer, reader, column)
        elif reader.kind == "enum":
            self._enum(writer, reader, column)
        elif reader.kind != "null":
            self._leaf(writer, reader, column)

    def _record(self, writer: AvroType, reader: AvroType, column: AvroColumn) -> None:
        children = {
            each.name: (each, child)
            for each, child in zip(reader.fields, column.children, strict=True)
        }
        if not _has_name_of(writer, reader):
            self._note(f"the writer's {writer} has another name than {reader}")
        matches = _matching_fields(writer, reader)
        missing = [each for each in reader.fields if each.name not in matches.values()]
        for each in missing:
            if each.default is MISSING:
                with self._at(f".{each.name}"):
                    self._fail("the writer's schema has no such field, and it has no default")
                return
        for each in writer.fields:
            with self._at(f".{each.name}"):
                if each.name in matches:
                    wanted, child = children[matches[each.name]]
                    self._resolve(each.type, wanted.type, child)
                else:
                    self._skip(each.type)
        for each in missing:
            with self._at(f".{each.name}"):
                self._default(each, children[each.name][1])

    def _default(self, wanted: AvroField, column: AvroColumn) -> None:
        start, size = self._literal(encoded_default(wanted.type, wanted.default, wanted.name))
        self._step(op.DEFAULT, start, start + size)
        self._resolve(wanted.type, wanted.type, column)
        self._step(op.END_DEFAULT)

    def _repeated(self, writer: AvroType, reader: AvroType, column: AvroColumn) -> None:
        assert writer.items is not None  # noqa: S101 - this and the next: of every array and map
        assert reader.items is not None  # noqa: S101
        least = writer.items.min_bytes + (writer.kind == "map")
        depth = self._enter()
        block = self._step(
            *(op.BLOCK, column.data, column.items_level, 0, least, depth, 0, column.level)
        )
        with self._at("[]"):
            if reader.kind == "map":
                self._step(op.STRING, column.children[0].data)
            self._resolve(writer.items, reader.items, column.children[-1])
        self._step(op.NEXT_ITEM, column.data, column.items_level, 0, least, depth, block)
        self._leave(block)

    def _enter(self) -> int:
        depth = self._nesting
        self._nesting += 1
        self.depth = max(self.depth, self._nesting)
        return depth

    def _leave(self, block: int) -> None:
        self._nesting -= 1
        self._steps[block][3] = self._next

    def _enum(self, writer: AvroType, reader: AvroType, column: AvroColumn) -> None:
        if not _has_name_of(writer, reader):
            self._fail(f"the writer's {writer} cannot be read as {reader}")
            return
        places = {each: self._literal(each.encode()) for each in reader.symbols}
        first = len(self._constants)
        for symbol in writer.symbols:
            known = symbol if symbol in places else reader.default
            if known is None:
                self._note(f"the reader's {reader} has no symbol {symbol}, and no default")
            self._constants += (-1, 0) if known is None else places[known]
        self._step(op.ENUM, column.data, first, len(writer.symbols))

    # Values without parts.

    def _leaf(self, writer: AvroType, reader: AvroType, column: AvroColumn) -> None:
        factor = _unit_factor(writer, reader)
        if factor is None:
            was, wanted = writer.logical, reader.logical
            self._fail(f"the writer's {was or writer} cannot be read as {wanted or reader}")
        elif reader.logical == "decimal":
            self._decimal(writer, reader, column)
        elif writer.kind in ("int", "long"):
            self._number(writer, reader, column, factor)
        elif writer.kind == "fixed":
            if writer.size != reader.size or not _has_name_of(writer, reader):
                self._fail(f"the writer's {writer} cannot be read as {reader}")
            elif self.layout.buffers[column.data].form is Form.SPANS:
                self._step(op.FIXED_BYTES, column.data)
            else:
                self._step(op.FIXED, column.data, writer.size)
        elif writer.kind == "float":
            is_double = self.layout.buffers[column.data].size == 8
            self._step(op.FLOAT_AS_DOUBLE if is_double else op.FLOAT, column.data)
        else:
            operation = {
                "double": op.DOUBLE,
                "boolean": op.BOOLEAN,
                "string": op.STRING,
                "bytes": op.BYTES,
            }[reader.kind if reader.kind in ("string", "bytes") else writer.kind]
            self._step(operation, column.data)

    def _number(self, writer: AvroType, reader: AvroType, column: AvroColumn, factor: int) -> None:
        kind = reader.kind
        if column.avro.kind == "union":
            members = [each for each in column.avro.branches if each.kind != "null"]
            kind = common_number(members) or kind
        low, high = _INT if writer.kind == "int" else _LONG
        if reader.logical.startswith("time-"):
            low, high = 0, (_DAY_MS if reader.kind == "int" else 1000 * _DAY_MS) // factor - 1
        elif factor > 1:
            low, high = -(_LONG[1] // factor), _LONG[1] // factor
        if (low, high, kind) == (*_LONG, "long"):
            self._step(op.LONG, column.data)
        elif (low, high, kind) == (*_INT, "int"):
            self._step(op.INT, column.data)
        else:
            self._step(op.NUMBER, column.data, _NUMBERS[kind], low, high, factor)

    def _decimal(self, writer: AvroType, reader: AvroType, column: AvroColumn) -> None:
        if writer.kind == "string" or (writer.kind == "fixed" and writer.size != reader.size):
            self._fail(f"the writer's {writer} cannot be read as a decimal")
            return
        if writer.logical == "decimal" and writer.scale != reader.scale:
            digits = f"{writer.scale} digits after the point"
            self._fail(f"the writer's decimals have {digits}, the reader's have {reader.scale}")
            return
        words = self.layout.buffers[column.data].size // 8
        first = len(self._constants)
        limit = 10**reader.precision - 1
        for number in range(words):
            word = (limit >> (64 * number)) & 0xFFFF_FFFF_FFFF_FFFF
            self._constants.append(word - (1 << 64) if word >> 63 else word)
        if writer.kind == "fixed":
            self._step(op.FIXED_DECIMAL, column.data, words, first, writer.size)
        else:
            self._step(op.DECIMAL, column.data, words, first)

    def _emit_rest(self, reader: AvroType, column: AvroColumn) -> None:
        """Add what takes the whole payload as the value, as Confluent's serializers write bytes."""
        if column.type != "binary":
            self._fail(f"the writer's bytes cannot be read as {reader}")
            return
        if column.validity is not None:
            self._step(op.PRESENT, column.validity)
        self._step(op.REST, column.data)

    # What nobody reads.

    def _skip(self, writer: AvroType) -> None:
        if writer.kind == "union":
            self._branches(writer, self._skip)
        elif writer.kind == "record":
            for each in writer.fields:
                with self._at(f".{each.name}"):
                    self._skip(each.type)
        elif writer.kind in ("array", "map"):
            self._skip_repeated(writer)
        elif writer.kind in ("int", "long", "enum"):
            self._step(op.SKIP_LONG)
        elif writer.kind in ("bytes", "string"):
            self._step(op.SKIP_BYTES)
        elif size := _SKIPPED_SIZES.get(writer.kind, writer.size):
            self._step(op.SKIP_FIXED, size)

    def _skip_repeated(self, writer: AvroType) -> None:
        assert writer.items is not None  # noqa: S101 - of every array and map
        least = writer.items.min_bytes + (writer.kind == "map")
        depth = self._enter()
        block = self._step(op.SKIP_BLOCK, 0, 0, 0, least, depth)
        with self._at("[]"):
            if writer.kind == "map":
                self._step(op.SKIP_BYTES)
            self._skip(writer.items)
        self._step(op.SKIP_ITEM, 0, 0, 0, least, depth, block)
        self._leave(block)


def _has_name_of(writer: AvroType, reader: AvroType) -> bool:
    """Whether the types have one name, the reader's aliases included; namespaces may differ."""
    return writer.short_name == reader.short_name or writer.name in reader.aliases


def _matching_branch(writer: AvroType, branches: tuple[AvroType, ...]) -> AvroType | None:
    """Return the type of a union that a value is read as."""
    same = [each for each in branches if each.kind == writer.kind]
    if writer.name:
        for each in same:
            if each.name == writer.name:
                return each
        same = [each for each in same if _has_name_of(writer, each)]
    if same:
        return same[0]
    promotions = _PROMOTIONS.get(writer.kind, ())
    return next((each for each in branches if each.kind in promotions), None)


def _matching_fields(writer: AvroType, reader: AvroType) -> dict[str, str]:
    """Return the name of the reader's field for each of the writer's that is read."""
    names = {each.name for each in writer.fields}
    matches = {each.name: each.name for each in reader.fields if each.name in names}
    for each in reader.fields:
        if each.name not in names:
            alias = next((a for a in each.aliases if a in names and a not in matches), None)
            if alias is not None:
                matches[alias] = each.name
    return matches


def _unit_factor(writer: AvroType, reader: AvroType) -> int | None:
    """Return what a number is multiplied by; None if it means something else to the reader."""
    if writer.logical == reader.logical or not writer.logical or not reader.logical:
        return 1
    was, _, unit = writer.logical.rpartition("-")
    wanted, _, finer = reader.logical.rpartition("-")
    if was != wanted or unit not in _UNITS or _UNITS[finer] < _UNITS[unit]:
        return None
    return _UNITS[finer] // _UNITS[unit]
