"""Which APIs the server has, in which versions (Kafka: ApiVersionManager)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog.server.protocol import Errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.server.protocol import Api, RequestContext

_PRODUCE = 0


class ApiVersionManager:
    """Answers ApiVersions.

    Parameters
    ----------
    apis
        What is advertised.
    cluster_id
        A client that expects another cluster is told so (KIP-1242).
    """

    def __init__(self, apis: Iterable[Api], cluster_id: str) -> None:
        self._keys = sorted(
            (
                {"apiKey": api.key, "minVersion": _lowest(api), "maxVersion": api.versions.stop - 1}
                for api in apis
            ),
            key=lambda each: each["apiKey"],
        )
        self._cluster_id = cluster_id

    def response(self, error: Errors = Errors.NONE) -> dict[str, Any]:
        """Return the response, with an error for a version that does not exist."""
        return {"errorCode": error, "apiKeys": self._keys}

    def handle_api_versions(
        self, request: dict[str, Any], context: RequestContext
    ) -> dict[str, Any]:
        """Answer ApiVersions."""
        expected = request["clusterId"]
        if context.version >= 5 and expected not in (None, self._cluster_id):
            return {"errorCode": Errors.REBOOTSTRAP_REQUIRED, "apiKeys": []}
        return self.response()


def _lowest(api: Api) -> int:
    # librdkafka does not fetch unless Produce is there from version 0, which brokers, too,
    # advertise without having it (KAFKA-18659).
    return 0 if api.key == _PRODUCE else api.versions.start
