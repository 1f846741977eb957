"""The schemas of a registry that runs, asked for over HTTP.

``GET /schemas`` has all versions of all subjects; a registry that does not know it is asked for its
subjects, for their versions, and for each of them. Schemas of other contexts than the default one
are not asked for.

Source: SchemasResource, SubjectsResource, SubjectVersionsResource, entities.Schema (Schema Registry
8.5); karapace_schema_registry_apis (Karapace, June 2026).
"""

from __future__ import annotations

import base64
import json
import uuid
from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pylog.errors import InvalidSchemaError
from pylog.internal_topics.registry_state import RegistryState
from pylog.internal_topics.schema_registry import schema_key
from pylog.locations import printable_location

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SECONDS = 30.0
_LARGEST_ANSWER = 1 << 28
_UNKNOWN_TO_IT = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)


def read_registry_at(url: str) -> RegistryState:
    """Return what a registry knows; ``url`` may have a user and a password.

    Raises
    ------
    InvalidSchemaError
        It does not answer, or not as a registry does.
    """
    registry = _Registry(url)
    active = {(each["subject"], each["version"]) for each in registry.versions(deleted=False)}
    state = RegistryState()
    versions = sorted(registry.versions(deleted=True), key=lambda each: int(each.get("id", 0)))
    for number, each in enumerate(versions):
        fields = {**each, "deleted": (each["subject"], each["version"]) not in active}
        guid = fields.pop("guid", None)
        if guid is not None:
            fields["md5"] = base64.b64encode(uuid.UUID(guid).bytes).decode()
        key = schema_key(each["subject"], each["version"])
        state.take(0, number, -1, key, json.dumps(fields).encode())
    for problem in state.problems:
        if problem.code == "unreadable_record":
            raise registry.error(f"a schema cannot be read: {problem.message}")
    return state


class _NoRedirects(HTTPRedirectHandler):
    """Follows none: the password would go along."""

    def redirect_request(self, *_: object) -> None:
        return None


class _Registry:
    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
        except ValueError as error:
            reason = f"this is no URL of a registry: {error}"
            raise InvalidSchemaError(reason, printable_location(url)) from None
        host = parts.netloc.rpartition("@")[2]
        self._url = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if parts.username is not None:
            given = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(given.encode()).decode()}"
        self._opener = build_opener(_NoRedirects)

    def error(self, reason: str) -> InvalidSchemaError:
        return InvalidSchemaError(reason, self._url)

    def versions(self, *, deleted: bool) -> list[Mapping[str, Any]]:
        """Return all versions of all subjects, as the registry answers."""
        asked = "?deleted=true" if deleted else ""
        found: Any
        try:
            found = self._get(f"/schemas{asked}")
        except HTTPError as error:
            if error.code not in _UNKNOWN_TO_IT:
                raise self._failure(error) from None
            found = list(self._each_version(asked))
        if not isinstance(found, list) or not all(map(_is_version, found)):
            raise self.error("the answer to /schemas is no list of schemas: is it a registry?")
        versions: list[Mapping[str, Any]] = found
        return versions

    def _each_version(self, asked: str) -> Iterator[Any]:
        try:
            for subject in self._get(f"/subjects{asked}"):
                path = f"/subjects/{quote(subject, safe='')}/versions"
                for version in self._get(f"{path}{asked}"):
                    yield self._get(f"{path}/{int(version)}{asked}")
        except HTTPError as error:
            raise self._failure(error) from None
        except (TypeError, ValueError):
            raise self.error("it does not answer as a registry does") from None

    def _failure(self, error: HTTPError) -> InvalidSchemaError:
        if error.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            reason = "the registry asks for a user and a password: http://USER:PASSWORD@HOST"
            return self.error(f"status {error.code}: {reason}")
        return self.error(f"the registry answers with status {error.code} ({error.reason})")

    def _get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        try:
            request = Request(f"{self._url}{path}", headers=self._headers)  # noqa: S310 - http(s)
            with self._opener.open(request, timeout=_SECONDS) as answer:
                content = answer.read(_LARGEST_ANSWER + 1)
        except HTTPError as error:
            error.close()
            raise
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise self.error(f"the registry does not answer: {reason}") from None
        if len(content) > _LARGEST_ANSWER:
            raise self.error(f"the answer to {path} is larger than 256 MiB")
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise self.error(f"the answer to {path} is no JSON: is it a registry?") from None


def _is_version(found: object) -> bool:
    return (
        isinstance(found, dict)
        and isinstance(found.get("subject"), str)
        and type(found.get("version")) is int
        and type(found.get("id")) is int
        and _is_uuid(found.get("guid"))
    )


def _is_uuid(text: object) -> bool:
    try:
        return text is None or bool(uuid.UUID(str(text)))
    except ValueError:
        return False
