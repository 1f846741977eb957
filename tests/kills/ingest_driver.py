"""A Spark driver that runs ingests, and may be killed: ``python -m … MASTER``.

Lines come in as JSON: the arguments of the job, and a `KillPoint` or null, or statements of SQL; an
answer goes out for each, as of `tests.kills.spark_driver`.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import nullcontext

from pylog_jobs import ingest
from pylog_jobs.error_text import describe
from pylog_jobs.secret_values import SecretValues
from pylog_jobs.session import spark_session
from tests.kills.kill_point import KillPoint
from tests.kills.spark_driver import say

_SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    ingest.add_arguments(parser)
    return parser.parse_args(given, argparse.Namespace(secrets=SecretValues()))


def _serve(master: str) -> None:
    spark = spark_session("killed ingests", master=master, settings=_SETTINGS)
    say("")
    while line := sys.stdin.readline():
        request = json.loads(line)
        kill = request.get("kill")
        armed = nullcontext() if kill is None else KillPoint.from_json(kill).armed("commit")
        try:
            for statement in request.get("sql", ()):
                spark.sql(statement)
            with armed:
                if "arguments" in request:
                    ingest.run(spark, ingest.prepare(_arguments(request["arguments"])))
            say("")
        except Exception as error:  # noqa: BLE001 - told to the test
            say(describe(error))
    spark.stop()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _serve(sys.argv[1])
