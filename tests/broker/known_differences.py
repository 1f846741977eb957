"""Where answers of `pylog.serve` differ from a broker's, each with its row in docs/serving.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.broker.answer_differences import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.broker.answer_differences import Difference

    Values = Callable[[Any], bool]


@dataclass(frozen=True)
class KnownDifference:
    """A kind of difference: field, and the values on both sides, exact or by a function.

    ``row`` is what the row in the table of the page begins with.
    """

    row: str
    api: str
    path: str
    theirs: object
    ours: object

    def is_of(self, difference: Difference) -> bool:
        """Whether a difference is of this kind."""
        return (
            self.api in ("", difference.api)
            and difference.path in (self.path, f"{difference.path.rpartition('.')[0]}.{self.path}")
            and _is(self.theirs, difference.theirs)
            and _is(self.ours, difference.ours)
        )


def _is(expected: Any, value: object) -> bool:  # noqa: ANN401
    return bool(expected(value)) if callable(expected) else expected == value


def _anything(value: object) -> bool:
    return True


def _is_there(value: object) -> bool:
    return value != ABSENT


def _is_internal(name: Any) -> bool:  # noqa: ANN401 - of any identity
    return any(
        str(each).startswith("__") for each in (name if isinstance(name, tuple) else (name,))
    )


_TEXTS = "texts of errors"
_OPERATIONS = "authorized operations"
_INTERNAL = "internal topics"
_SESSIONS = "fetch sessions"
_TRANSACTIONS = "coordinators of transactions"
_CONFIGS = "configurations"
_AGAIN = "the same group or partition again in one request"
_FEATURES = "APIs and features"
_STRANGERS = "members of groups that are not known"
_MISSING_APIS = {
    *(*range(24, 29), 30, 31, 34, *range(38, 42), 43, 45, 46, *range(49, 52), 55, 57, 61),
    *(*range(64, 67), *range(76, 82), *range(83, 95)),
}
_ALL_OPERATIONS, _READ_OPERATIONS = 3576, 1288
_CLUSTER_OPERATIONS, _CLUSTER_READ_OPERATIONS = 8096, 1280

KNOWN = (
    KnownDifference(_TEXTS, "", "errorMessage", _anything, _anything),
    KnownDifference(
        *(_OPERATIONS, "Metadata", "topics[].topicAuthorizedOperations"),
        *(_ALL_OPERATIONS, _READ_OPERATIONS),
    ),
    KnownDifference(
        *(_OPERATIONS, "DescribeTopicPartitions", "topics[].topicAuthorizedOperations"),
        *(_ALL_OPERATIONS, _READ_OPERATIONS),
    ),
    *(
        KnownDifference(
            *(_OPERATIONS, api, "clusterAuthorizedOperations"),
            *(_CLUSTER_OPERATIONS, _CLUSTER_READ_OPERATIONS),
        )
        for api in ("Metadata", "DescribeCluster")
    ),
    KnownDifference(_INTERNAL, "Metadata", "topics[]", _is_internal, ABSENT),
    KnownDifference(_INTERNAL, "DescribeTopicPartitions", "topics[]", _is_internal, ABSENT),
    KnownDifference(_INTERNAL, "DescribeTopicPartitions", "topics[]", ABSENT, _is_there),
    KnownDifference(
        _INTERNAL, "DescribeTopicPartitions", "nextCursor.topicName", _is_internal, _is_there
    ),
    KnownDifference(
        _INTERNAL,
        "ListConfigResources",
        "configResources[]",
        lambda it: _is_internal(it[1:]),
        ABSENT,
    ),
    KnownDifference("illegal names", "DescribeTopicPartitions", "topics[].errorCode", -1, 17),
    KnownDifference(
        *("illegal names", "DescribeTopicPartitions", "topics[].topicAuthorizedOperations"),
        *(-(2**31), _READ_OPERATIONS),
    ),
    KnownDifference(
        "aborted transactions", "Fetch", "responses[].abortedTransactions[]", ABSENT, _is_there
    ),
    KnownDifference(_SESSIONS, "Fetch", "sessionId", lambda it: it > 0, 0),
    KnownDifference(_TRANSACTIONS, "FindCoordinator", "errorCode", 0, 53),
    KnownDifference(_TRANSACTIONS, "FindCoordinator", "nodeId", 1, -1),
    KnownDifference(
        _TRANSACTIONS, "FindCoordinator", "coordinators[]", lambda it: it[1] == 1, ABSENT
    ),
    KnownDifference(
        _TRANSACTIONS, "FindCoordinator", "coordinators[]", ABSENT, lambda it: it[1] == -1
    ),
    KnownDifference(_CONFIGS, "DescribeConfigs", "results[].configs[]", _is_there, ABSENT),
    KnownDifference(
        *(_CONFIGS, "DescribeConfigs", "results[].configs[].readOnly"),
        *(False, True),
    ),
    KnownDifference(_CONFIGS, "DescribeConfigs", "results[].configs[].configSource", 3, 5),
    KnownDifference(
        *(_CONFIGS, "DescribeConfigs", "results[].configs[].synonyms[]"),
        *(("min.insync.replicas", 3), ABSENT),
    ),
    KnownDifference(
        _CONFIGS, "DescribeConfigs", "results[].configs[].documentation", _is_there, None
    ),
    KnownDifference(_CONFIGS, "ListConfigResources", "configResources[]", (8, "1"), ABSENT),
    KnownDifference(_AGAIN, "OffsetFetch", "topics[].partitions[]", 0, ABSENT),
    KnownDifference(_AGAIN, "OffsetFetch", "groups[].topics[].partitions[]", 0, ABSENT),
    KnownDifference(_AGAIN, "OffsetFetch", "groups[].errorCode", 0, 42),
    KnownDifference(_AGAIN, "OffsetFetch", "groups[].topics[]", _is_there, ABSENT),
    KnownDifference(_AGAIN, "DescribeGroups", "groups[].errorCode", 0, 42),
    KnownDifference(_AGAIN, "DescribeGroups", "groups[].groupState", "Empty", "Dead"),
    KnownDifference(_AGAIN, "ConsumerGroupDescribe", "groups[].errorCode", 69, 42),
    KnownDifference(_STRANGERS, "ConsumerGroupHeartbeat", "errorCode", 69, 25),
    KnownDifference(_STRANGERS, "OffsetCommit", "topics[].partitions[].errorCode", 69, 25),
    *(
        KnownDifference(_FEATURES, "ApiVersions", "apiKeys[]", api_key, ABSENT)
        for api_key in sorted(_MISSING_APIS)
    ),
    KnownDifference(_FEATURES, "ApiVersions", "supportedFeatures[]", _is_there, ABSENT),
    KnownDifference(_FEATURES, "ApiVersions", "finalizedFeatures[]", _is_there, ABSENT),
    KnownDifference(_FEATURES, "ApiVersions", "finalizedFeaturesEpoch", lambda it: it > 0, -1),
)
