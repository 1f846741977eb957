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
from pylog.config.server_properties import ServerProperties
from pylog.errors import LogStorageError
from pylog.internal_topics.message_writer import EachOf
from pylog.lazy_modules import LazyModule
from pylog.server.protocol import Errors, first_times

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from pylog.admin import topics  # imports Arrow
    from pylog.config.config_property import PropertyKind
    from pylog.server.metadata_cache import MetadataCache
    from pylog.server.protocol import Request, RequestContext, Response
    from pylog.server.replica_manager import ReplicaManager

    _TopicConfigs = Mapping[str, Mapping[str, str]] | LogStorageError
else:
    topics = LazyModule("pylog.admin.topics")

_TOPIC, _BROKER = 2, 4
_OF_TOPIC, _OF_BROKER, _DEFAULT = 1, 4, 5
_BOOLEAN, _STRING, _INT, _LONG, _DOUBLE, _LIST = 1, 2, 3, 5, 6, 7


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
        if kind == _TOPIC and name not in self._replicas.topics:
            return {**answer, "errorCode": Errors.UNKNOWN_TOPIC_OR_PARTITION}
        if kind == _BROKER and name not in ("", str(self._metadata.identity.node_id)):
            reason = f"the one broker here is {self._metadata.identity.node_id}, not {name}"
            return {**answer, "errorCode": Errors.INVALID_REQUEST, "errorMessage": reason}
        if kind not in (_TOPIC, _BROKER):
            return {**answer, "errorCode": Errors.NONE}
        own: Mapping[str, str] = {}
        if kind == _TOPIC and isinstance(of_topics, LogStorageError):
            error = {"errorCode": Errors.KAFKA_STORAGE_ERROR, "errorMessage": str(of_topics)}
            return {**answer, **error}
        if kind == _TOPIC and not isinstance(of_topics, LogStorageError):
            own = of_topics.get(name, {})
        names = LogConfig.broker_names() if kind == _BROKER else None
        keys = set(resource["configurationKeys"] or ())
        configs = self._configs(own, names, with_synonyms=with_synonyms)
        wanted = [each for each in configs if not keys or each["name"] in keys]
        return {**answer, "errorCode": Errors.NONE, "configs": wanted}

    def _configs(
        self, own: Mapping[str, str], broker_names: Mapping[str, str] | None, *, with_synonyms: bool
    ) -> list[dict[str, Any]]:
        of_broker = self._server.log_config.properties()
        kinds = LogConfig.kinds()
        names = of_broker if broker_names is None else broker_names
        configs = []
        for name in sorted({*names, *own}):
            shown = name if broker_names is None else broker_names[name]
            below = _OF_BROKER if name in self._server.named else _DEFAULT
            value, source = of_broker.get(name, ""), below
            synonyms = []
            if name in own:
                value, source = own[name], _OF_TOPIC
                synonyms.append({"name": name, "value": value, "source": source})
            if name in of_broker:
                synonyms.append({"name": shown, "value": of_broker[name], "source": below})
            configs.append(
                {
                    "name": shown,
                    "value": value,
                    "readOnly": True,
                    "configSource": source,
                    "isSensitive": False,
                    "synonyms": synonyms if with_synonyms else [],
                    "configType": _type_of(kinds[name][1] if name in kinds else None),
                }
            )
        return configs

    def handle_list_config_resources(self, request: Request, context: RequestContext) -> Response:
        """Answer ListConfigResources: topics and the broker; version 0 asks for none of them."""
        if context.version == 0:
            return {"configResources": []}
        wanted = set(request["resourceTypes"] or (_TOPIC, _BROKER))
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


def _type_of(kind: PropertyKind | None) -> int:
    if isinstance(kind, Boolean):
        return _BOOLEAN
    if isinstance(kind, WordList):
        return _LIST
    if not isinstance(kind, Number):
        return _STRING
    if not kind.is_whole:
        return _DOUBLE
    return _INT if kind.at_most <= INT32_MAX else _LONG
