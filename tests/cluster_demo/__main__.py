"""``make cluster-demo``: all jobs on a standalone cluster of Spark, from ingest to compact.

``python -m tests.cluster_demo DIRECTORY`` starts a master and two workers on loopback, submits each
job with ``spark-submit``, and holds the counts of each against what was made. It does so twice:
with the wheel in the environment of the workers, and with the wheel sent along by ``--py-files``;
``--delivery`` names one of them. With ``--once`` no job is submitted a second time. The cluster is
stopped at the end, after an error, and on Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.delivery import ROOT, build_wheel, deliveries
from tests.support.standalone_cluster import StandaloneCluster

if TYPE_CHECKING:
    from tests.support.delivery import Delivery

JOBS = ROOT / "jobs" / "pylog_jobs"
COUNT_RECORDS = Path(__file__).with_name("count_records.py")
CONFIGURATION = ROOT / "spark-conf" / "standalone"
ROWS = 200_000
PARTITIONS = 6
_INGEST = """\
[source]
format = "parquet"
path = "{rows}"

[record]
key = "customer"
value_format = "json"

[target]
directory = "{log_directory}"
topic = "orders"
partitions = {partitions}
compression = "zstd"
job_id = "cluster-demo"
properties.retention.ms = -1
properties.segment.bytes = 100000
"""


class DemoError(Exception):
    """A job failed, or its counts are not those expected; the text says which."""


def write_rows(path: Path) -> None:
    """Write the table that is ingested: ids from 0 on, each once."""
    ids = np.arange(ROWS)
    customers = [f"customer-{number % 997}" for number in ids]
    pq.write_table(pa.table({"id": ids, "customer": customers, "amount": ids % 100 / 4}), path)


@dataclass(frozen=True, slots=True)
class Walk:
    """The way of a table through the jobs, with one delivery of the package.

    Attributes
    ----------
    cluster, delivery
        Where jobs run, and how pylog gets there.
    directory
        Where the log directory, the configuration and the exported files go.
    rows
        The Parquet file that is ingested.
    is_short
        Whether each job is submitted once.
    """

    cluster: StandaloneCluster
    delivery: Delivery
    directory: Path
    rows: Path
    is_short: bool

    def run(self) -> None:
        """Run all jobs; raise `DemoError` where a count is wrong."""
        self.directory.mkdir()
        log_directory, exported = str(self.directory / "logs"), self.directory / "exported"
        config = self.directory / "ingest.toml"
        config.write_text(
            _INGEST.format(rows=self.rows, log_directory=log_directory, partitions=PARTITIONS)
        )
        ingest = (JOBS / "ingest.py", "--config", str(config))
        self._submit("ingest", ingest, {"rows": ROWS})
        if not self.is_short:
            self._submit("ingest again", ingest, {"rows": 0, "alreadyCommitted": True})
            self._read_all(log_directory)
        export = (JOBS / "export.py", log_directory, str(exported))
        self._submit("export", export, {"rows": ROWS})
        if not self.is_short:
            self._submit("export again", export, {"rows": 0})
        # Without Spark: hidden files (names that begin with _ or .) are not part of a data set.
        files = [each for each in exported.rglob("*.parquet") if not _is_hidden(each, exported)]
        in_files = sum(pq.read_metadata(each).num_rows for each in files)
        if in_files != ROWS:
            msg = f"the exported files hold {in_files} rows, expected {ROWS}"
            raise DemoError(msg)
        self._clean_up(log_directory)

    def _read_all(self, log_directory: str) -> None:
        counted = {
            "records": ROWS,
            "distinct_ids": ROWS,
            "least_id": 0,
            "greatest_id": ROWS - 1,
            "sum_of_ids": ROWS * (ROWS - 1) // 2,
        }
        self._submit("read", (COUNT_RECORDS, log_directory, "orders"), counted)
        self._submit("verify", (JOBS / "verify.py", log_directory), {"errors": 0, "warnings": 0})

    def _clean_up(self, log_directory: str) -> None:
        """Trim and compact what was ingested; hold what is read then against both summaries."""
        trim = (JOBS / "retention.py", log_directory, "--config", "cleanup.policy=delete")
        keep = sum(each.stat().st_size for each in Path(log_directory).rglob("*.log")) // PARTITIONS
        by_size = (*trim, "--config", f"retention.bytes={keep // 2}")
        planned = self._submit("retention plan", (*by_size, "--dry-run"), {"dryRun": True})
        trimmed = {name: planned[name] for name in ("removedSegments", "sizeInBytes")}
        self._submit("retention", by_size, trimmed)
        records = ROWS - planned["removedRecords"]
        if not 0 < records < ROWS:
            msg = f"retention leaves {records} of {ROWS} records, expected some"
            raise DemoError(msg)
        clean = (JOBS / "compact.py", log_directory, "--config", "cleanup.policy=compact")
        done = self._submit("compact", clean, {"cleanedPartitions": PARTITIONS})
        records -= done["removedRecords"]
        self._submit("read", (COUNT_RECORDS, log_directory, "orders"), {"records": records})
        self._submit("verify", (JOBS / "verify.py", log_directory), {"errors": 0, "warnings": 0})

    def _submit(
        self, what: str, command: tuple[Path | str, ...], expected: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the summary of a job that ended well and says what is expected."""
        began = time.monotonic()
        script, *arguments = command
        done = self.cluster.submit(
            Path(script),
            [str(each) for each in arguments],
            python=self.delivery.python,
            options=self.delivery.options,
        )
        summary = _last_json(done.stdout)
        got = {name: summary.get(name) for name in expected}
        if done.returncode != 0 or got != expected:
            msg = (
                f"{what} ended with status {done.returncode} and {got}, expected 0 and {expected}\n"
                f"{done.stderr[-4000:]}{done.stdout[-4000:]}"
            )
            raise DemoError(msg)
        shown = ", ".join(
            f"{name} {value if isinstance(value, bool) else format(value, ',')}"
            for name, value in expected.items()
        )
        say(f"  {what:<14}{time.monotonic() - began:5.1f} s  {shown}")
        return summary


def _is_hidden(path: Path, above: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.relative_to(above).parts)


def _last_json(text: str) -> dict[str, Any]:
    """Return the summary: ``spark-submit`` sends both streams of the driver to this one."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return dict(json.loads(lines[-1])) if lines else {}


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _stop(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def parse() -> argparse.Namespace:
    """Read the command line, see above."""
    parser = argparse.ArgumentParser(prog="cluster-demo", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--delivery", choices=("wheel", "py-files"))
    parser.add_argument("--once", action="store_true")
    return parser.parse_args()


def main(directory: Path, delivery: str | None, *, once: bool) -> int:
    """Run the demonstration, see above; return the exit status."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGHUP, _stop)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    rows = directory / "rows.parquet"
    write_rows(rows)
    ways = deliveries(build_wheel(directory), directory / "environments")
    try:
        say("== starting a master and two workers on loopback")
        with StandaloneCluster(directory / "cluster", configuration=CONFIGURATION) as cluster:
            say(f"  {cluster.master_url}, logs in {directory / 'cluster'}")
            for way in ways:
                if delivery not in (None, way.name):
                    continue
                say(f"\n== {ROWS:,} rows, the package delivered by {way.name}")
                Walk(cluster, way, directory / way.name, rows, is_short=once).run()
    except DemoError as error:
        sys.stderr.write(f"cluster-demo: error: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("cluster-demo: interrupted; the cluster has been stopped\n")
        return 128 + signal.SIGINT
    say("\nAll counts are right; the cluster has been stopped.")
    return 0


if __name__ == "__main__":
    asked = parse()
    sys.exit(main(asked.directory.absolute(), asked.delivery, once=asked.once))
