"""Which windows a run of ``ingest`` is for: those that are over, and fit what was committed."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pylog_jobs.incremental import last_run
from pylog_jobs.ingest_config import read_ingest_config
from pylog_jobs.job import UsageError
from pylog_jobs.run_window import LAST, RunWindow, instant_text
from pylog_jobs.target import check_directory

if TYPE_CHECKING:
    import argparse

    from pylog_jobs.config_file import ConfigFile
    from pylog_jobs.ingest_config import IngestConfig

_LOGGER = logging.getLogger("pylog_jobs.ingest")


class ChosenWindows(NamedTuple):
    """The configurations of the windows to run, and which windows of a backfill wait."""

    configs: list[IngestConfig]
    waiting: tuple[RunWindow, ...] = ()


def choose_windows(
    file: ConfigFile, windows: list[RunWindow], arguments: argparse.Namespace
) -> ChosenWindows:
    """Return what the arguments ask for; an error if it cannot run, or must not."""
    configs = [read_ingest_config(file, each) for each in windows]
    is_backfill = arguments.backfill is not None
    if is_backfill:
        _check_backfill(configs)
    elif (arguments.date or arguments.start) and not configs[0].uses_window:
        _LOGGER.warning("no window stands in %s: --date and --start change nothing", file.path)
    chosen = configs
    if not arguments.dry_run:  # which commits nothing
        chosen = _allowed(configs, allows_open=arguments.allow_open_window)
    waiting = tuple(each.window for each in configs[len(chosen) :])
    if is_backfill and arguments.backfill.startswith(LAST):
        chosen = _missing_and_newest(chosen)
    _check_directories(chosen[0])
    for config in chosen:
        _check_against_ledger(config, is_full=arguments.full)
    return ChosenWindows(chosen, waiting)


def _allowed(configs: list[IngestConfig], *, allows_open: bool) -> list[IngestConfig]:
    """Return the configurations whose windows are over, or may be open."""
    over = [each for each in configs if not (each.uses_window and each.window.is_open)]
    if len(over) == len(configs):
        return configs
    first = configs[len(over)].window
    loss = f"window {first} is not over, and rows that come later would never be read"
    if allows_open:
        _LOGGER.warning("%s; it is committed for good", loss)
        return configs
    can_run = f"can run from {instant_text(first.end)}"
    if not over:
        msg = f"{loss}. It {can_run}; --allow-open-window runs it now, and commits it for good"
        raise UsageError(msg)
    _LOGGER.info("%d windows are not over; the first %s", len(configs) - len(over), can_run)
    return over


def _check_directories(config: IngestConfig) -> None:
    check_directory("[target]: directory", config.target.directory)
    if config.trigger.checkpoint is not None:
        check_directory("[trigger]: checkpoint", config.trigger.checkpoint)


def _missing_and_newest(configs: list[IngestConfig]) -> list[IngestConfig]:
    """Leave out what is committed, from whatever source then, and what is older than the job."""
    *older, newest = configs
    committed = [_is_committed(each) for each in older]
    if True not in committed:
        _LOGGER.warning(
            "no window from %s on is committed yet, so that only the newest one runs; older ones "
            "run with --backfill A..B",
            instant_text(configs[0].window.start),
        )
        return [newest]
    since = committed.index(True)
    found = zip(older[since:], committed[since:], strict=True)
    return [each for each, is_done in found if not is_done] + [newest]


def _is_committed(config: IngestConfig) -> bool:
    return replace(config.target, fingerprint=None).write_job().is_committed()


def _check_backfill(configs: list[IngestConfig]) -> None:
    first = configs[0]
    if first.trigger.is_stream or first.incremental is not None:
        msg = "--backfill is for windows; what has a bookmark or a checkpoint reads on by itself"
        raise UsageError(msg)
    if first.target.job_id is None:
        msg = "[target]: job_id is missing: --backfill looks in the ledger which windows there are"
        raise UsageError(msg)
    windows: dict[str | None, RunWindow] = {}
    for config in configs:
        job_id = config.target.job_id
        if job_id in windows:
            raise UsageError(
                f"[target]: job_id is {job_id!r} for the window {windows[job_id]} and for "
                f"{config.window}; write {{start}} in it, or {{hour}}, or give longer windows"
            )
        windows[job_id] = config.window


def _check_against_ledger(config: IngestConfig, *, is_full: bool) -> None:
    """Raise if the job was something else when the log directory took it."""
    if is_full and config.incremental is None:
        raise UsageError("--full belongs to an ingest with [incremental]")
    if is_full and config.target.topic is None:
        raise UsageError("--full needs a topic in [target], whose records it replaces")
    old_id = config.target.ambiguous_job_id
    if old_id is not None:
        old = replace(config.target, job_id=old_id, fingerprint=None).write_job()
        if old.is_committed() or old.newest_run() is not None:
            raise UsageError(
                f"[target]: job_id: the log directory has job {old_id!r}, which may be this window "
                "or another one whose --param values read the same; look which rows the topic has, "
                "and write the parameters apart in job_id, such as {a}/{b}"
            )
    target = config.target
    if config.incremental is not None:
        last_run(config, is_full=is_full)
        target = replace(target, fingerprint=None)  # which the run before has been held against
    job = target.write_job()
    if not job.is_committed():
        job.ensure_topic_is_meant()
