"""Bounds of samples: how often they hold the truth."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pylog.statistics.recompression import Bounds, ratio_bounds, share_bounds


def as_array(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def test_of_everything_nothing_is_uncertain() -> None:
    parts, wholes = as_array([1, 2]), as_array([4, 8])
    assert ratio_bounds(parts, wholes, 1.0) == Bounds(0.25, 0.25, 0.25)
    found = share_bounds(parts, wholes, 1.0, records=12)
    assert found == Bounds(0.25, 0.25, 0.25)


def test_one_run_tells_an_estimate_and_no_bounds() -> None:
    assert ratio_bounds(as_array([1]), as_array([4]), 0.1) == Bounds(0.25, 0.0, float("inf"))
    found = share_bounds(as_array([1]), as_array([4]), 0.1, records=4)
    assert found == Bounds(0.25, 0.0, 1.0)


def test_of_nothing_there_is_no_ratio() -> None:
    nothing = as_array([])
    assert ratio_bounds(nothing, nothing, 0.5) is None
    assert share_bounds(nothing, nothing, 0.5, records=0) is None


@pytest.mark.parametrize("runs", [8, 40])
def test_a_ratio_lies_within_its_bounds_in_most_samples(runs: int) -> None:
    draw = random.Random(runs)
    population = [
        (int(whole * draw.uniform(0.2, 0.6)), whole)
        for whole in (draw.randrange(50_000, 250_000) for _ in range(4_000))
    ]
    truth = sum(part for part, _ in population) / sum(whole for _, whole in population)
    held = 0
    for _ in range(400):
        parts, wholes = zip(*draw.sample(population, runs), strict=True)
        found = ratio_bounds(as_array(list(parts)), as_array(list(wholes)), runs / 4_000)
        assert found is not None
        held += found.low <= truth <= found.high
    assert held >= 0.92 * 400


@pytest.mark.parametrize("are_bursts", [False, True])
def test_the_shares_of_the_keys_that_look_hottest_lie_within_their_bounds(
    *, are_bursts: bool
) -> None:
    # Zipf's keys, spread evenly or in bursts of one key: the winners of a sample were lucky.
    draw = random.Random(6)
    numpy_draw = np.random.default_rng(6)
    runs_in_all, records_in_run = 2_000, 200
    keys = np.minimum(numpy_draw.zipf(1.4, runs_in_all * records_in_run), 3_000)
    if are_bursts:
        keys = np.repeat(keys[:: records_in_run // 4], records_in_run // 4)[: keys.size]
    keys = keys.reshape(runs_in_all, records_in_run)
    truth = np.bincount(keys.ravel(), minlength=3_001) / keys.size
    held = 0
    for _ in range(200):
        sample = keys[draw.sample(range(runs_in_all), 50)]
        counts = np.bincount(sample.ravel(), minlength=3_001)
        wholes = as_array([records_in_run] * 50)
        all_held = True
        for key in np.argsort(-counts)[:10].tolist():
            found = share_bounds(
                (sample == key).sum(axis=1).astype(np.int64),
                wholes,
                50 / runs_in_all,
                records=sample.size,
            )
            assert found is not None
            all_held &= found.low <= truth[key] <= found.high
        held += all_held
    assert held >= 0.92 * 200
