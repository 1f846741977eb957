"""Consumer groups of three clients, by both protocols, that read from `pylog.serve`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Self

import confluent_kafka
import confluent_kafka.admin
import pytest

import pylog
from pylog.reading.log_directory import TopicChoice
from pylog.server.broker_server import BrokerServer, Listener
from pylog.server.group_config import GroupCoordinatorConfig
from pylog.server.group_coordinator_service import GroupOptions
from pylog.server.replica_manager import ServedLogs
from tests.interop.group_member import CLIENTS, SESSION_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from tests.support.golden import GoldenRoot

CASE = "4.3.0/internal-logdir"
TOPIC, PARTITIONS, ENDS = "orders", ["orders-0", "orders-1"], {"orders-0": 59, "orders-1": 49}
SNAPSHOT_GROUP, SNAPSHOT_OFFSETS = "grp-late", {"orders-1": 9}
CONSUMER_PROTOCOL = "librdkafka-848"
# As `tests.unit.admin.test_consumer_groups` reads it from Kafka's dump.
INSTANT_MS, INSTANT_GROUP, INSTANT_PLACE, INSTANT_OFFSET = (
    1_795_220_321_441,
    "grp-a",
    ("orders", 1),
    8,
)
SECONDS = 40.0
# Short, so that a test need not wait long for what a killed member leaves behind.
CONFIG = GroupCoordinatorConfig(
    group_min_session_timeout_ms=SESSION_MS, consumer_session_timeout_ms=2 * SESSION_MS
)


class Member:
    """A member in another process, and what it has printed last."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._changed = threading.Condition()
        self.assignments: list[list[str]] = []
        self.read: dict[str, list[int]] = {}
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report: dict[str, Any] = json.loads(line)
            with self._changed:
                if report["assigned"] != self.assigned:
                    self.assignments.append(report["assigned"])
                self.read = report["read"]
                self._changed.notify_all()

    @property
    def assigned(self) -> list[str]:
        """What it reads now."""
        return self.assignments[-1] if self.assignments else []

    @property
    def next_offsets(self) -> dict[str, int]:
        """The next offset of each partition that it has read."""
        return {name: following for name, (_, following) in self.read.items()}

    def wait_until(self, what: Callable[[Member], bool]) -> None:
        """Return when it has printed what is waited for."""
        with self._changed:
            is_so = self._changed.wait_for(lambda: what(self), SECONDS)
        assert is_so, f"assigned {self.assignments}, read {self.read}"

    def kill(self) -> None:
        """End it at once: it does not leave its group."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        """Let it leave its group and end."""
        self._process.terminate()
        self._process.wait(SECONDS)
        self._end()

    def _end(self) -> None:
        self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()


def member(client: str, address: str, group: str, instance: str = "-") -> Member:
    """Start a member that is a client in Python."""
    command = [sys.executable, "-m", "tests.interop.group_member"]
    return Member([*command, client, address, group, instance, TOPIC])


@contextmanager
def served(path: Path, offsets: Path | None = None, port: int = 0) -> Iterator[str]:
    """Serve a directory with short timeouts; give the address."""
    choice = TopicChoice.of(topics=None, assign=None, pattern=None)
    options = GroupOptions(offsets=offsets, config=CONFIG)
    with BrokerServer(
        ServedLogs(paths=(path,), choice=choice), Listener(port=port), None, options
    ) as server:
        yield server.address


def wait_until_both_share(one: Member, other: Member) -> None:
    """Return when each of two members has one of the two partitions."""
    for each_member in (one, other):
        each_member.wait_until(lambda each: len(each.assigned) == 1)
    deadline = time.monotonic() + SECONDS
    while sorted(one.assigned + other.assigned) != PARTITIONS:
        assert time.monotonic() < deadline, (one.assignments, other.assignments)
        time.sleep(0.05)


def share_and_resume(case: Path, offsets: Path, join: Callable[[str], Member]) -> None:
    """Let two members share, kill the first, let the second leave, and serve anew for a third."""
    with ExitStack() as stack:
        address = stack.enter_context(served(case, offsets))
        first = stack.enter_context(join(address))
        first.wait_until(lambda each: each.next_offsets == ENDS)
        assert first.assigned == PARTITIONS
        late = stack.enter_context(join(address))
        wait_until_both_share(first, late)
        first.kill()
        late.wait_until(lambda each: each.assigned == PARTITIONS)
        late.stop()  # it commits where it is
    with served(case, offsets) as address, join(address) as again:
        again.wait_until(lambda each: each.assigned == PARTITIONS)
        time.sleep(1)  # what it could read by mistake would be here by then
        assert again.read == {}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.thorough(one_in=3)
def test_members_share_are_killed_and_resume_after_a_restart(
    golden_root: GoldenRoot, tmp_path: Path, client: str
) -> None:
    share_and_resume(
        golden_root.case(CASE), tmp_path / "offsets", lambda where: member(client, where, "story")
    )


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_group_of_the_snapshot_resumes_where_it_was(golden_root: GoldenRoot, client: str) -> None:
    with (
        served(golden_root.case(CASE)) as address,
        member(client, address, SNAPSHOT_GROUP) as alone,
    ):
        alone.wait_until(lambda each: each.next_offsets == ENDS)
        firsts = {name: first for name, (first, _) in alone.read.items()}
        assert firsts == {"orders-0": 0, **SNAPSHOT_OFFSETS}


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_static_member_that_is_restarted_disturbs_nobody(
    golden_root: GoldenRoot, client: str
) -> None:
    with served(golden_root.case(CASE)) as address, ExitStack() as stack:
        other = stack.enter_context(member(client, address, "static", "other"))
        other.wait_until(lambda each: each.assigned == PARTITIONS)
        restarted = stack.enter_context(member(client, address, "static", "restarted"))
        wait_until_both_share(restarted, other)
        before, seen = restarted.assigned, len(other.assignments)
        if client == CONSUMER_PROTOCOL:
            restarted.stop()  # by which it says that it will be back; killed, it is waited for
        else:
            restarted.kill()
        back = stack.enter_context(member(client, address, "static", "restarted"))
        back.wait_until(lambda each: each.assigned == before)
        assert len(other.assignments) == seen


def _write_six_partitions(directory: Path, records: int) -> dict[str, int]:
    rows = [{"key": b"", "value": b"x" * 100, "partition": number % 6} for number in range(records)]
    pylog.write_topic(directory, TOPIC, rows, partitions=6, partition="partition")
    return {f"{TOPIC}-{partition}": records // 6 for partition in range(6)}


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("client", CLIENTS)
def test_of_three_members_one_dies_and_the_others_take_over(tmp_path: Path, client: str) -> None:
    ends = _write_six_partitions(tmp_path, 600)

    def share(members: list[Member]) -> None:
        """Return when all partitions are shared, as many for one as for another."""
        deadline = time.monotonic() + SECONDS
        while True:
            assigned = [each.assigned for each in members]
            is_fair = {len(each) for each in assigned} == {6 // len(members)}
            if is_fair and sorted(name for each in assigned for name in each) == sorted(ends):
                return
            assert time.monotonic() < deadline, assigned
            time.sleep(0.05)

    with served(tmp_path) as address, ExitStack() as stack:
        members = [stack.enter_context(member(client, address, "three")) for _ in range(3)]
        share(members)
        members[2].kill()
        share(members[:2])
        deadline = time.monotonic() + SECONDS
        read: dict[str, int] = {}
        while read != ends:
            assert time.monotonic() < deadline, read
            for each in members:
                read |= {
                    name: max(following, read.get(name, 0))
                    for name, following in each.next_offsets.items()
                }
            time.sleep(0.05)


def wait_until_stable(address: str, group: str, members: int) -> None:
    """Return when a server has all members of a group, and each has its assignment."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": address})
    deadline = time.monotonic() + SECONDS
    while True:
        found = admin.describe_consumer_groups([group])[group].result(SECONDS)
        if found.state is confluent_kafka.ConsumerGroupState.STABLE:
            assert len(found.members) == members
            return
        assert time.monotonic() < deadline, found.state
        time.sleep(0.05)


@pytest.mark.thorough(one_in=3)
@pytest.mark.parametrize("client", CLIENTS)
def test_members_read_on_over_a_restart_of_the_server(tmp_path: Path, client: str) -> None:
    ends = _write_six_partitions(tmp_path / "logs", 60_000)
    offsets = tmp_path / "offsets"
    with ExitStack() as stack:
        with served(tmp_path / "logs", offsets) as address:
            reading = stack.enter_context(member(client, address, "story"))
            reading.wait_until(lambda each: bool(each.read))
        with served(tmp_path / "logs", offsets, int(address.rpartition(":")[2])):
            reading.wait_until(lambda each: each.next_offsets == ends)
            # All may have been read before it has found the server again. An aiokafka that is
            # closed then never ends: it tries its last commit again and again, and looks for no
            # coordinator once it is closing (`GroupCoordinator.ensure_coordinator_known`).
            wait_until_stable(address, "story", members=1)
            reading.stop()  # it commits where it is
            again = stack.enter_context(member(client, address, "story"))
            again.wait_until(lambda each: len(each.assigned) == 6)
            time.sleep(1)  # what it could read by mistake would be here by then
            assert again.read == {}


def test_the_command_keeps_offsets_and_begins_at_an_instant(
    golden_root: GoldenRoot, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "pylog", "serve", str(golden_root.case(CASE))]
    command += ["--port", "0", "--json", "--offsets", str(tmp_path / "offsets")]
    for before, after in ((INSTANT_OFFSET, 30), (30, 31)):
        with subprocess.Popen(
            [*command, "--at", str(INSTANT_MS)], stdout=subprocess.PIPE
        ) as server:
            try:
                assert server.stdout is not None
                address = json.loads(server.stdout.readline())["address"]
                place = confluent_kafka.TopicPartition(*INSTANT_PLACE)
                client = confluent_kafka.Consumer(
                    {"bootstrap.servers": address, "group.id": INSTANT_GROUP}
                )
                assert client.committed([place], SECONDS)[0].offset == before
                place.offset = after
                client.commit(offsets=[place], asynchronous=False)
                client.close()
            finally:
                server.terminate()
        assert server.returncode == 0
