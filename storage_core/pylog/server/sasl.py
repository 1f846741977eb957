"""Authentication of clients: SASL/PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.

A connection says which mechanism it takes (SaslHandshake), then exchanges its messages
(SaslAuthenticate; after a handshake of version 0 they come as frames without a header). Until it is
authenticated it may ask for nothing but the API versions, and after a failure for nothing at all.

Source: SaslServerAuthenticator, PlainSaslServer, ScramSaslServer (Kafka 4.4); RFC 4616, RFC 5802,
RFC 7677; KIP-43, KIP-84, KIP-152.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from binascii import Error as Base64Error
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import InvalidConfigurationError
from pylog.files.checkpoint_file import read_text_file
from pylog.internal_topics.message_reader import Readable
from pylog.server.messages import APIS
from pylog.server.protocol import (
    Errors,
    RequestParseError,
    read_header,
    read_request,
    response_pieces,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog.internal_topics.message_writer import FileRange
    from pylog.server.kafka_apis import Client, KafkaApis
    from pylog.server.protocol import Api, Handler, Request, Response

_SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *_SCRAM_HASHES)
_ITERATIONS = 4096
_SALT_BYTES = 16
_MOST_TOKEN_BYTES = 1 << 12
_FAILED = "authentication failed: invalid credentials"


class AuthenticationFailedError(Exception):
    """A client has not proved who it is."""


def read_users(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return passwords by user of a file with a line ``user:password`` for each.

    Raises
    ------
    InvalidConfigurationError
        A line is not of that form, a user is there twice, or there is none. No message repeats a
        password.

    Examples
    --------
    >>> from pathlib import Path
    >>> size = Path("users.txt").write_text("anna:secret", encoding="utf-8")
    >>> list(pylog.jobs.read_users("users.txt"))
    ['anna']
    """
    users: dict[str, str] = {}
    for number, line in enumerate(read_text_file(path).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        user, colon, password = line.partition(":")
        if not colon or not user or not password:
            reason = f"line {number} is not of the form user:password"
            raise InvalidConfigurationError(reason, path)
        if user in users:
            reason = f"line {number} has user {user!r} a second time"
            raise InvalidConfigurationError(reason, path)
        users[user] = password
    if not users:
        reason = "there is no user; expected lines of the form user:password"
        raise InvalidConfigurationError(reason, path)
    return users


class ScramCredential(NamedTuple):
    """What a server stores of a password (Kafka: ScramCredential)."""

    salt: bytes
    stored_key: bytes
    server_key: bytes


class Credentials:
    """What all connections are checked against; passwords are hashed once."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._passwords = {name: password.encode() for name, password in users.items()}
        self._scram = {
            (hash_name, name): _scram_credential(hash_name, password)
            for hash_name in _SCRAM_HASHES.values()
            for name, password in self._passwords.items()
        }

    def has_password(self, user: str, password: bytes) -> bool:
        """Whether the user has this password; takes as long if there is no such user."""
        known = self._passwords.get(user)
        is_same = hmac.compare_digest(known or secrets.token_bytes(16), password)
        return is_same and known is not None

    def scram(self, hash_name: str, user: str) -> ScramCredential | None:
        """Return a user's credential."""
        return self._scram.get((hash_name, user))


def _scram_credential(hash_name: str, password: bytes) -> ScramCredential:
    salt = os.urandom(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(hash_name, password, salt, _ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    return ScramCredential(
        salt,
        hashlib.new(hash_name, client_key).digest(),
        hmac.digest(salted, b"Server Key", hash_name),
    )


class _Plain:
    """``[authzid] NUL authcid NUL passwd`` (RFC 4616)."""

    def __init__(self, credentials: Credentials) -> None:
        self.is_complete = False
        self._credentials = credentials

    def respond(self, token: bytes) -> bytes:
        parts = token.split(b"\0")
        if len(parts) != 3:
            raise AuthenticationFailedError
        as_whom, user, password = parts
        name = user.decode("utf-8", "replace")
        if as_whom not in (b"", user) or not self._credentials.has_password(name, password):
            raise AuthenticationFailedError
        self.is_complete = True
        return b""


class _Scram:
    """client-first, server-first, client-final, server-final (RFC 5802); no channel binding."""

    def __init__(self, credentials: Credentials, hash_name: str) -> None:
        self.is_complete = False
        self._credentials = credentials
        self._hash_name = hash_name
        self._credential: ScramCredential | None = None
        self._nonce = ""
        self._begun = ""
        self._header = ""  # what stands before the first message; the last one repeats it

    def respond(self, token: bytes) -> bytes:
        try:
            text = token.decode()
        except UnicodeDecodeError as error:
            raise AuthenticationFailedError from error
        return (self._first(text) if self._credential is None else self._last(text)).encode()

    def _first(self, text: str) -> str:
        binding, as_whom, bare = (*text.split(",", 2), "", "")[:3]
        fields = _fields(bare)
        user = fields.get("n", "").replace("=2C", ",").replace("=3D", "=")
        nonce = fields.get("r", "")
        credential = self._credentials.scram(self._hash_name, user)
        is_other = as_whom.removeprefix("a=") not in ("", fields.get("n", ""))
        if binding != "n" or is_other or not nonce or credential is None:
            raise AuthenticationFailedError
        self._credential = credential
        self._header = base64.b64encode(f"{binding},{as_whom},".encode()).decode()
        self._nonce = nonce + secrets.token_urlsafe(18)
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={_ITERATIONS}"
        self._begun = f"{bare},{answer}"
        return answer

    def _last(self, text: str) -> str:
        credential = self._credential
        without_proof, _, proof_text = text.rpartition(",p=")
        fields = _fields(without_proof)
        if credential is None or fields.get("c") != self._header or fields.get("r") != self._nonce:
            raise AuthenticationFailedError
        try:
            proof = base64.b64decode(proof_text, validate=True)
        except Base64Error as error:
            raise AuthenticationFailedError from error
        signed = f"{self._begun},{without_proof}".encode()
        signature = hmac.digest(credential.stored_key, signed, self._hash_name)
        if len(proof) != len(signature):
            raise AuthenticationFailedError
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash_name, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise AuthenticationFailedError
        self.is_complete = True
        server_signature = hmac.digest(credential.server_key, signed, self._hash_name)
        return f"v={base64.b64encode(server_signature).decode()}"


def _fields(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in text.split(","))}


def sasl_refusals() -> dict[Api, Handler]:
    """Return the handlers for a connection that need not, or need no longer, authenticate."""
    error = Errors.ILLEGAL_SASL_STATE
    reason = "SaslAuthenticate request received after successful authentication"
    refusal = {"errorCode": error, "errorMessage": reason, "authBytes": b""}
    return {
        APIS["SaslHandshake"]: lambda *_: {"errorCode": error, "mechanisms": []},
        APIS["SaslAuthenticate"]: lambda *_: refusal,
    }


class SaslSession:
    """The requests of one connection: first those that authenticate it, then all others."""

    def __init__(self, apis: KafkaApis, credentials: Credentials) -> None:
        self._apis = apis
        self._credentials = credentials
        self._mechanism: _Plain | _Scram | None = None
        self._is_raw = False
        self._has_failed = False
        names = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")
        self._before = {APIS[name].key: APIS[name] for name in names}

    async def handle(self, frame: bytes, client: Client) -> list[bytearray | FileRange]:
        """Answer a request; see `KafkaApis.handle`."""
        if self._mechanism is not None and self._mechanism.is_complete:
            return await self._apis.handle(frame, client)
        if self._has_failed or len(frame) > _MOST_TOKEN_BYTES:
            raise RequestParseError("a request of a client that has not authenticated")
        if self._is_raw:
            return [bytearray(self._respond(frame))]
        readable = Readable(frame)
        header, api = read_header(readable, self._before)
        if api is APIS["ApiVersions"]:
            return await self._apis.handle(frame, client)
        request = read_request(api, readable, header.version)
        answer = self._handshake if api is APIS["SaslHandshake"] else self._authenticate
        response = answer(request, header.version)
        return response_pieces(api, header.version, header.correlation_id, response)

    def _handshake(self, request: Request, version: int) -> Response:
        name = request["mechanism"]
        if name not in MECHANISMS or self._mechanism is not None:
            self._has_failed = True
            return {
                "errorCode": Errors.UNSUPPORTED_SASL_MECHANISM,
                "mechanisms": list(MECHANISMS),
            }
        if name in _SCRAM_HASHES:
            self._mechanism = _Scram(self._credentials, _SCRAM_HASHES[name])
        else:
            self._mechanism = _Plain(self._credentials)
        self._is_raw = version == 0
        return {"errorCode": Errors.NONE, "mechanisms": list(MECHANISMS)}

    def _authenticate(self, request: Request, _version: int) -> Response:
        try:
            return {"errorCode": Errors.NONE, "authBytes": self._respond(request["authBytes"])}
        except AuthenticationFailedError:
            return {
                "errorCode": Errors.SASL_AUTHENTICATION_FAILED,
                "errorMessage": _FAILED,
                "authBytes": b"",
            }

    def _respond(self, token: bytes) -> bytes:
        if self._mechanism is None:
            raise RequestParseError("a SaslAuthenticate request before a SaslHandshake")
        try:
            return self._mechanism.respond(token)
        except AuthenticationFailedError as error:
            self._has_failed = True
            if self._is_raw:
                raise RequestParseError(_FAILED) from error
            raise
