"""DescribeConfigs: what topics and the broker are configured to.

A topic's own properties are those of the cluster's metadata, else those that pylog keeps beside the
logs; below them are those of the broker's ``server.properties``, if it was given, and Kafka's
defaults.

Source: ConfigHelper, ConfigurationControlManager (Kafka 4.4); KIP-133, KIP-226.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pylog.config.config_property import INT32_MAX, Boolean, Number, WordList
from pylog.config.log_config import LogConfig
from pylog.config.server_properties import NAMES, SYNONYMS_OF, ServerProperties
from pylog.errors import LogStorageError
from pylog.internal_topics.message_writer import EachOf
from pylog.lazy_modules import LazyModule
from pylog.server.metadata_cache import error_for_unknown
from pylog.server.protocol import Errors, first_times

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from pylog.admin import topics  # imports Arrow
    from pylog.config.config_property import PropertyKind
    from pylog.server.metadata_cache import MetadataCache
    from pylog.server.protocol import Request, RequestContext, Response
    from pylog.server.replica_manager import ReplicaManager

    _TopicConfigs = Mapping[str, Mapping[str, str]] | LogStorageError
else:
    topics = LazyModule("pylog.admin.topics")

_TOPIC, _BROKER = 2, 4
_BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 8, 16, 32
_RESOURCE_TYPES = frozenset({_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP})
_OF_TOPIC, _OF_BROKER, _DEFAULT = 1, 4, 5
_BOOLEAN, _STRING, _INT, _LONG, _DOUBLE, _LIST = 1, 2, 3, 5, 6, 7

_WITHOUT_LOGS = {
    "errors.deadletterqueue.group.enable": ("false", _BOOLEAN, ""),
    "follower.replication.throttled.replicas": ("", _LIST, ""),
    "leader.replication.throttled.replicas": ("", _LIST, ""),
    "local.retention.bytes": ("-2", _LONG, "log.local.retention.bytes"),
    "local.retention.ms": ("-2", _LONG, "log.local.retention.ms"),
    "min.insync.replicas": ("1", _INT, "min.insync.replicas"),
    "remote.copy.lag.bytes": ("-1", _LONG, "log.remote.copy.lag.bytes"),
    "remote.copy.lag.ms": ("0", _LONG, "log.remote.copy.lag.ms"),
    "remote.log.copy.disable": ("false", _BOOLEAN, ""),
    "remote.log.delete.on.disable": ("false", _BOOLEAN, ""),
    "remote.storage.enable": ("false", _BOOLEAN, ""),
    "unclean.leader.election.enable": ("false", _BOOLEAN, "unclean.leader.election.enable"),
}
"""Properties of topics that say nothing about files on a local disk: default, type, and name in a
broker's own configuration."""

_SYNONYM = ("name", "value", "source")


class ConfigHelper:
    """Answers DescribeConfigs and ListConfigResources; reads the cluster's metadata once."""

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        paths: Sequence[str | os.PathLike[str]],
        server_properties: ServerProperties | None,
    ) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._paths = paths
        self._server = server_properties or ServerProperties()
        self._topics: Mapping[str, Mapping[str, str]] | None = None
        self._lock = threading.Lock()

    def _topic_configs(self) -> Mapping[str, Mapping[str, str]]:
        with self._lock:
            if self._topics is None:
                described = topics.topics(*self._paths)
                self._topics = {each.topic: each.configs or {} for each in described.topics}
            return self._topics

    async def handle_describe_configs(self, request: Request, context: RequestContext) -> Response:
        """Answer DescribeConfigs."""
        resources = request["resources"]
        of_topics: _TopicConfigs = {}
        if any(each["resourceType"] == _TOPIC for each in resources):
            try:
                of_topics = await self._replicas.in_thread(self._topic_configs)
            except LogStorageError as error:
                of_topics = error

        def described(asked: tuple[dict[str, Any], bool]) -> Response:
            resource, is_first = asked
            if not is_first:
                return _asked_before(resource)
            return self._described(resource, of_topics, with_synonyms=request["includeSynonyms"])

        return {"results": EachOf(described, first_times(resources, _name_of))}

    def _described(
        self, resource: dict[str, Any], of_topics: _TopicConfigs, *, with_synonyms: bool
    ) -> Response:
        kind, name = resource["resourceType"], resource["resourceName"]
        answer: dict[str, Any] = {"resourceType": kind, "resourceName": name, "configs": []}
        if kind not in _RESOURCE_TYPES:
            reason = f"{kind} is not a type of resource that has configurations"
            return {**answer, "errorCode": Errors.INVALID_REQUEST, "errorMessage": reason}
        if kind == _TOPIC and name not in self._replicas.topics:
            return {**answer, "errorCode": error_for_unknown(name)}
        if kind == _BROKER and name not in ("", str(self._metadata.identity.node_id)):
            reason = f"the one broker here is {self._metadata.identity.node_id}, not {name}"
            return {**answer, "errorCode": Errors.INVALID_REQUEST, "errorMessage": reason}
        # Without a name, a broker tells the dynamic configuration of all of them.
        if kind not in (_TOPIC, _BROKER) or not name:
            return {**answer, "errorCode": Errors.NONE}
        own: Mapping[str, str] = {}
        if kind == _TOPIC and isinstance(of_topics, LogStorageError):
            error = {"errorCode": Errors.KAFKA_STORAGE_ERROR, "errorMessage": str(of_topics)}
            return {**answer, **error}
        if kind == _TOPIC and not isinstance(of_topics, LogStorageError):
            own = of_topics.get(name, {})
        keys = set(resource["configurationKeys"] or ())
        configs = self._of_topic(own) if kind == _TOPIC else self._of_broker()
        wanted = [
            each if with_synonyms else {**each, "synonyms": []}
            for each in configs
            if not keys or each["name"] in keys
        ]
        return {**answer, "errorCode": Errors.NONE, "configs": wanted}

    def _of_topic(self, own: Mapping[str, str]) -> Iterator[Response]:
        of_broker, defaults = self._server.log_config.properties(), LogConfig().properties()
        kinds = LogConfig.kinds()
        for name in sorted({*of_broker, *_WITHOUT_LOGS, *own}):
            default, config_type, synonym = _WITHOUT_LOGS.get(name, ("", _STRING, ""))
            if name in of_broker:
                default, config_type = defaults[name], _type_of(kinds[name][1])
                synonym = NAMES.get(name, "")
            found = []
            if name in own:
                found.append((name, own[name], _OF_TOPIC))
            if name in self._server.named:
                found.append((SYNONYMS_OF[name][0], of_broker[name], _OF_BROKER))
            value, source = found[0][1:] if found else (default, _DEFAULT)
            if synonym:
                found.append((synonym, default, _DEFAULT))
            yield _config(name, value, source, config_type, found)

    def _of_broker(self) -> Iterator[Response]:
        of_broker, kinds = self._server.log_config.properties(), LogConfig.kinds()
        for name, shown in sorted(NAMES.items()):
            source = _OF_BROKER if name in self._server.named else _DEFAULT
            value = of_broker[name]
            yield _config(shown, value, source, _type_of(kinds[name][1]), [(shown, value, source)])

    def handle_list_config_resources(self, request: Request, context: RequestContext) -> Response:
        """Answer ListConfigResources: topics and the broker; version 0 asks for none of them."""
        if context.version == 0:
            return {"configResources": []}
        wanted = set(request["resourceTypes"] or (_TOPIC, _BROKER))
        if wanted - _RESOURCE_TYPES:
            return {"errorCode": Errors.UNSUPPORTED_VERSION, "configResources": []}
        resources = [
            *((name, _TOPIC) for name in self._replicas.topics),
            (str(self._metadata.identity.node_id), _BROKER),
        ]
        return {
            "configResources": EachOf(
                lambda each: {"resourceName": each[0], "resourceType": each[1]},
                [each for each in resources if each[1] in wanted],
            )
        }


def _config(
    name: str, value: str, source: int, config_type: int, synonyms: list[tuple[str, str, int]]
) -> Response:
    return {
        "name": name,
        "value": value,
        "readOnly": True,
        "configSource": source,
        "isSensitive": False,
        "synonyms": [
            dict(zip(("name", "value", "source"), each, strict=True)) for each in synonyms
        ],
        "configType": config_type,
    }


def _name_of(resource: dict[str, Any]) -> tuple[int, str]:
    return resource["resourceType"], resource["resourceName"]


def _asked_before(resource: dict[str, Any]) -> Response:
    return {
        "resourceType": resource["resourceType"],
        "resourceName": resource["resourceName"],
        "errorCode": Errors.INVALID_REQUEST,
        "errorMessage": "this resource was asked for before",
        "configs": [],
    }


def _type_of(kind: PropertyKind) -> int:
    if isinstance(kind, Boolean):
        return _BOOLEAN
    if isinstance(kind, WordList):
        return _LIST
    if not isinstance(kind, Number):
        return _STRING
    if not kind.is_whole:
        return _DOUBLE
    return _INT if kind.at_most <= INT32_MAX else _LONG
