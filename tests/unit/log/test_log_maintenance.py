"""The background tasks of a manager: a table of when each is due, by Kafka's own properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.config import LogManagerConfig
from pylog.log.log_context import LogContext
from pylog.log.log_maintenance import TASKS, LogMaintenance
from pylog.log.log_manager import LogManager
from pylog.testing import ManualClock, ManualScheduler
from tests.unit.log.owned_log import NOW_MS

if TYPE_CHECKING:
    from pathlib import Path

# Each with the property that sets its interval, and the default in Kafka's documentation.
INTERVALS = {
    "log-retention": ("log.retention.check.interval.ms", 300_000),
    "log-flusher": ("log.flush.scheduler.interval.ms", 2**63 - 1),
    "recovery-point-checkpoint": ("log.flush.offset.checkpoint.interval.ms", 60_000),
    "log-start-offset-checkpoint": ("log.flush.start.offset.checkpoint.interval.ms", 60_000),
    "high-watermark-checkpoint": ("replica.high.watermark.checkpoint.interval.ms", 5_000),
    "producer-expiration": ("producer.id.expiration.check.interval.ms", 600_000),
}


@pytest.mark.parametrize(("name", "expected"), INTERVALS.items())
def test_each_task_has_the_interval_of_its_property(name: str, expected: tuple[str, int]) -> None:
    setting, default = expected
    assert TASKS.keys() == INTERVALS.keys()
    assert TASKS[name].interval_ms(LogManagerConfig()) == default
    others = {key: "1000" for key, _ in INTERVALS.values()}
    config = LogManagerConfig.from_properties(others | {setting: "77"})
    assert TASKS[name].interval_ms(config) == 77


@pytest.mark.parametrize("runs_retention", [False, True])
def test_tasks_run_after_the_first_delay_and_then_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, runs_retention: bool
) -> None:
    runs: dict[str, list[int]] = {name: [] for name in TASKS}
    clock = ManualClock(NOW_MS)
    scheduler = ManualScheduler(clock)
    for name, task in TASKS.items():

        def note(_: LogMaintenance, name: str = name) -> None:
            runs[name].append(clock.milliseconds() - NOW_MS)

        monkeypatch.setitem(TASKS, name, task._replace(run=note))
    steps = {key: str(10 * place) for place, (key, _) in enumerate(INTERVALS.values(), start=1)}
    config = LogManagerConfig.from_properties(steps | {"log.initial.task.delay.ms": "30"})
    context = LogContext(clock=clock, scheduler=scheduler)
    with LogManager(
        [tmp_path], manager_config=config, context=context, runs_retention=runs_retention
    ):
        for _ in range(13):
            clock.sleep(10)
            scheduler.tick()
    for place, (name, found) in enumerate(runs.items(), start=1):
        due = [30 + 10 * place * again for again in range(11) if 30 + 10 * place * again <= 130]
        assert found == (due if runs_retention or name != "log-retention" else [])
