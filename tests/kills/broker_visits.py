"""A real broker in the log directory of jobs: before them, in between, and at the end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pylog
from tests.kills.account import Account
from tests.kills.jobs import CONFIG, PARTITIONS, TOPIC

if TYPE_CHECKING:
    from tests.support.kafka_broker import KafkaBroker


class BrokerVisits:
    """Lets a broker into a log directory, and keeps account of it.

    Parameters
    ----------
    broker
        Runs; its log directory becomes that of the jobs.
    """

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        self._count = 0
        broker.create_topic(TOPIC, PARTITIONS)
        broker.stop()
        self.account = Account(broker.log_dir)
        with pylog.logs.LogManager([broker.log_dir]) as manager:
            manager.store_topic_config(TOPIC, CONFIG)

    def append(self) -> None:
        """Let the broker open the directory, append to each partition, and go."""
        self._count += 1
        self.account.is_taken_over |= self.account.is_announced
        self._broker.start()
        sent = [f"broker visit {self._count:03} partition {each}" for each in range(PARTITIONS)]
        with self._broker.producer() as producer:
            for partition, text in enumerate(sent):
                producer.send(TOPIC, text.encode(), partition=partition).get(30)
        self._broker.stop()
        self.account.add([text.encode() for text in sent])

    def check_what_is_consumed(self) -> None:
        """Let the broker start at the end: it recovers nothing, and serves what we read."""
        self._broker.start()
        consumed = self._broker.consume(TOPIC, PARTITIONS)
        self._broker.stop()
        assert "unclean shutdown" not in self._broker.server_log
        assert "Truncating" not in self._broker.server_log
        table = pylog.scan(self.account.directory, topics=TOPIC).to_table()
        columns = ("partition", "offset", "value")
        read = list(zip(*(table[each].to_pylist() for each in columns), strict=True))
        served = [
            (partition, record.offset, record.value)
            for partition, records in sorted(consumed.items())
            for record in records
        ]
        assert served == read
        self.account.look()
        assert Counter(value for _, _, value in served).total() == table.num_rows
