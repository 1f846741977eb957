"""Batches as rules for masking have them, before clients get them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.record_masking import RecordMasking
from pylog.record.batch_scan import Window, find_batches
from pylog.recovery.mask import BatchMasker
from pylog.server.rate_limited_log import server_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylog.columnar.record_masking import MaskRule
    from pylog.model import TopicPartition

_LOGGER = server_logger(__name__)


class MaskedRecords:
    """Rebuilds batches that rules change. Any number of threads."""

    def __init__(self, rules: Sequence[MaskRule]) -> None:
        self._rules = tuple(rules)

    def covers(self, topic: str) -> bool:
        """Whether a rule is for records of a topic."""
        return any(each.covers(topic) for each in self._rules)

    def masked(self, topic_partition: TopicPartition, data: bytes) -> bytes:
        """Return whole batches of a partition, masked; what follows them is cut off."""
        masking = RecordMasking(self._rules)
        masker = BatchMasker(topic_partition, masking)
        window = Window.of(find_batches(np.frombuffer(data, dtype=np.uint8)))
        found = b"".join(masker.rewrite(window))
        if masking.not_json:
            _LOGGER.warning(
                "%s: some values are not JSON where a rule has JSON paths: nothing in them is "
                "replaced",
                topic_partition,
            )
        return found
