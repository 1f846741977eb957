from __future__ import annotations

from pylog.errors import CorruptRecordError
from pylog.reading.damage import Attempts


class CountedError(CorruptRecordError):
    asked = 0

    def __str__(self) -> str:
        type(self).asked += 1
        return super().__str__()


def fail(number: int) -> None:
    reason = f"record {number} is broken"
    raise CountedError(reason)


def test_what_went_wrong_is_kept_once() -> None:
    attempts = Attempts()
    assert attempts.read(lambda: 5) == 5
    for number in (1, 2, 1):
        assert attempts.read(lambda: fail(number)) is None  # noqa: B023 - called at once
    assert [str(each) for each in attempts.errors] == [
        "record 1 is broken",
        "record 2 is broken",
    ]


def test_many_errors_are_not_compared_with_each_other() -> None:
    attempts = Attempts()
    CountedError.asked = 0
    for number in range(1000):
        attempts.read(lambda: fail(number))  # noqa: B023 - called at once
    assert len(attempts.errors) == 1000
    assert CountedError.asked == 1000
