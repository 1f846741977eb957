"""A log directory worth looking at, for the notebooks: always the same, made in a second.

Topic ``orders`` has 60,000 records of a week in six partitions: more by day than at night and than
at the weekend, some customers far more often than others, two headers each. Topic ``payments`` has
one record for every fourth order.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa

import pylog

MONDAY = dt.datetime(2024, 11, 4, tzinfo=dt.UTC)
ORDERS = 60_000
_SEED = 7
_CUSTOMERS = 2_000
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def order_rows() -> pa.Table:
    """Return the orders: order, customer, amount, items, country, source, time (UTC, ms)."""
    random = np.random.default_rng(_SEED)
    minutes = np.arange(7 * 24 * 60)
    hours = minutes / 60
    by_day = 1.15 + np.sin((hours - 9) / 24 * 2 * np.pi) + 0.4 * np.sin((hours - 4) / 6 * np.pi)
    rate = np.clip(by_day, 0.1, None) * np.where(minutes < 5 * 24 * 60, 1.0, 0.55)
    minute = np.sort(random.choice(minutes, ORDERS, p=rate / rate.sum()))
    # In order of time, as producers write: sorted within each minute, too.
    times = np.sort(minute * 60_000 + random.integers(0, 60_000, ORDERS))
    customers = random.zipf(1.35, ORDERS) % _CUSTOMERS
    start = int(MONDAY.timestamp() * 1000)
    return pa.table(
        {
            "order": np.arange(1, ORDERS + 1),
            "customer": [f"customer-{number}" for number in customers],
            "amount": np.round(random.lognormal(3.2, 0.9, ORDERS), 2),
            "items": [
                [f"item-{number}" for number in random.integers(1, 500, count)]
                for count in np.minimum(random.geometric(0.35, ORDERS), 12)
            ],
            "country": random.choice(["DE", "FR", "PL", "AT", "NL"], ORDERS),
            "source": random.choice(["web", "app", "store"], ORDERS, p=[0.55, 0.35, 0.1]),
            "time": pa.array(start + times, pa.timestamp("ms", tz="UTC")),
        }
    )


def write_orders(directory: str, *, compression: str = "zstd", batch_size: int = 16 * 1024) -> str:
    """Write both topics into a log directory made anew; return its path."""
    shutil.rmtree(directory, ignore_errors=True)
    Path(directory).parent.mkdir(parents=True, exist_ok=True)
    rows = order_rows()
    records = _records(rows, ["order", "customer", "amount", "items", "country"])
    segments = {"segment.bytes": str(128 * 1024)}
    options = {"compression": compression, "batch_size": batch_size, "config": segments}
    pylog.write_topic(directory, "orders", records, partitions=6, **options)
    payments = _records(rows.take(list(range(0, ORDERS, 4))), ["order", "amount"])
    pylog.write_topic(directory, "payments", payments, partitions=3, **options)
    return directory


def _records(rows: pa.Table, columns: list[str]) -> pa.Table:
    """Return records whose values are some columns as JSON, and whose keys are the customers."""
    values = [json.dumps(row).encode() for row in rows.select(columns).to_pylist()]
    headers = [
        [{"key": "source", "value": source.encode()}, {"key": "schema", "value": b"order-v2"}]
        for source in rows["source"].to_pylist()
    ]
    return pa.table(
        {
            "key": rows["customer"],
            "value": pa.array(values, pa.binary()),
            "timestamp": rows["time"],
            "headers": pa.array(headers, _HEADERS),
        }
    )
