from __future__ import annotations

from decimal import Decimal

from pylog.typed.encoder import JSON_VALUES, UnencodableError


def test_an_error_gains_the_steps_on_its_way_out() -> None:
    error = UnencodableError("no", ".name").within("[3]").within(".items")

    assert str(error) == "items[3].name: no"
    assert str(UnencodableError("no")) == "no"


def test_numbers_of_json_keep_all_digits() -> None:
    assert JSON_VALUES.decode("[1.10, 3]") == [Decimal("1.10"), 3]
    assert str(JSON_VALUES.decode("-0")) == "-0.0"
