"""Clients that have to show who they are: passwords by three mechanisms, TLS, certificates."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

import pylog
from pylog.errors import InvalidConfigurationError
from tests.support.raw_client import RawClient

USERS = {"reader": "secret, with = signs", "other": "another"}
CERTIFICATES = Path(__file__).parents[2] / "support" / "certificates"
AUTHORITY = str(CERTIFICATES / "authority.pem")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def _topics(address: str, seconds: float = 20, **options: Any) -> list[str]:  # noqa: ANN401
    """Return what librdkafka lists; raises `confluent_kafka.KafkaException`."""
    settings = {name.replace("_", "."): value for name, value in options.items()}
    client = AdminClient({"bootstrap.servers": address, "log_level": 0, **settings})
    return list(client.list_topics(timeout=seconds).topics)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_password_is_asked_for(case: Path, mechanism: str) -> None:
    of_sasl: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    with pylog.serve(case, users=USERS) as server:
        for user, password in USERS.items():
            who: dict[str, Any] = {"sasl_username": user, "sasl_password": password}
            assert _topics(server.address, **of_sasl, **who) == ["payments"]
        for who in (
            {"sasl_username": "reader", "sasl_password": "another"},
            {"sasl_username": "nobody", "sasl_password": "another"},
        ):
            with pytest.raises(confluent_kafka.KafkaException):
                _topics(server.address, 1, **of_sasl, **who)


def test_nothing_is_told_before_a_password_is(case: Path) -> None:
    with pylog.serve(case, users=USERS) as server:
        with RawClient(server.address) as client:
            assert client.ask("ApiVersions", 2, {})["errorCode"] == 0
            with pytest.raises(ConnectionError):
                client.ask("Metadata", 13, {"topics": None})
        with RawClient(server.address) as client:
            answer = client.ask("SaslHandshake", 1, {"mechanism": "GSSAPI"})
            assert (answer["errorCode"], answer["mechanisms"]) == (33, list(MECHANISMS))
        with RawClient(server.address) as client:
            client.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
            answer = client.ask("SaslAuthenticate", 2, {"authBytes": b"\0reader\0wrong"})
            assert answer["errorCode"] == 58
            with pytest.raises(ConnectionError):  # one try a connection
                client.ask("SaslAuthenticate", 2, {"authBytes": b"\0other\0another"})


def _scram(client: RawClient, whom: str) -> list[int]:
    """Authenticate ``other`` to act as somebody; return the error codes."""
    client.ask("SaslHandshake", 1, {"mechanism": "SCRAM-SHA-256"})
    header, bare = f"n,{whom},", "n=other,r=nonce"
    first = client.ask("SaslAuthenticate", 2, {"authBytes": f"{header}{bare}".encode()})
    if first["errorCode"]:
        return [first["errorCode"]]
    told = first["authBytes"].decode()
    fields = dict(each.split("=", 1) for each in told.split(","))
    salt, rounds = base64.b64decode(fields["s"]), int(fields["i"])
    salted = hashlib.pbkdf2_hmac("sha256", b"another", salt, rounds)
    key = hmac.digest(salted, b"Client Key", "sha256")
    final = f"c={base64.b64encode(header.encode()).decode()},r={fields['r']}"
    signed = f"{bare},{told},{final}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    proof = base64.b64encode(bytes(one ^ two for one, two in zip(key, signature, strict=True)))
    token = f"{final},p=".encode() + proof
    return [0, client.ask("SaslAuthenticate", 2, {"authBytes": token})["errorCode"]]


def test_a_user_may_ask_to_act_as_itself_and_as_nobody_else(case: Path) -> None:
    with pylog.serve(case, users=USERS) as server:
        for whom, expected in (("", [0, 0]), ("a=other", [0, 0]), ("a=reader", [58])):
            with RawClient(server.address) as client:
                assert _scram(client, whom) == expected


def test_tokens_without_a_header_follow_a_handshake_of_version_0(case: Path) -> None:
    with pylog.serve(case, users=USERS) as server, RawClient(server.address) as client:
        assert client.ask("SaslHandshake", 0, {"mechanism": "PLAIN"})["errorCode"] == 0
        client.send_frame(b"\0other\0another")
        assert client.receive_frame() == b""
        assert client.ask("Metadata", 13, {"topics": None})["topics"]


def test_connections_are_encrypted(case: Path) -> None:
    tls = pylog.jobs.tls_context(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    with pylog.serve(case, tls=tls) as server:
        options: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": AUTHORITY}
        assert _topics(server.address, **options) == ["payments"]
        with pytest.raises(confluent_kafka.KafkaException):
            _topics(server.address, 1)
        records = _read(server.address, security_protocol="SSL", ssl_ca_location=AUTHORITY)
    assert records == pylog.scan(case, topics=["payments"], isolation="read_committed").count()


def _read(address: str, **options: str) -> int:
    settings = {name.replace("_", "."): value for name, value in options.items()}
    own = {"group.id": "nobody", "enable.partition.eof": True, "enable.auto.commit": False}
    client = confluent_kafka.Consumer({"bootstrap.servers": address, **settings, **own})
    try:
        client.assign([confluent_kafka.TopicPartition("payments", each, 0) for each in (0, 1)])
        count = ends = 0
        while ends < 2:
            for message in client.consume(100, 0.3):
                error = message.error()
                if error is None:
                    count += 1
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    ends += 1
                else:
                    raise confluent_kafka.KafkaException(error)
        return count
    finally:
        client.close()


def test_a_client_shows_its_certificate(case: Path) -> None:
    tls = pylog.jobs.tls_context(
        CERTIFICATES / "server.pem", CERTIFICATES / "server.key", AUTHORITY
    )
    options: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": AUTHORITY}
    with pylog.serve(case, tls=tls) as server:
        own: dict[str, Any] = {
            "ssl_certificate_location": str(CERTIFICATES / "client.pem"),
            "ssl_key_location": str(CERTIFICATES / "client.key"),
        }
        assert _topics(server.address, **options, **own) == ["payments"]
        with pytest.raises(confluent_kafka.KafkaException):
            _topics(server.address, 1, **options)


OWN = {
    "ssl_certificate_location": str(CERTIFICATES / "client.pem"),
    "ssl_key_location": str(CERTIFICATES / "client.key"),
}
WRONG: dict[str, dict[str, Any]] = {
    "another authority": {"ssl_ca_location": str(CERTIFICATES / "client.pem"), **OWN},
    "no certificate": {"ssl_ca_location": AUTHORITY},
    "the certificate of nobody's authority": {
        "ssl_ca_location": AUTHORITY,
        "ssl_certificate_location": str(CERTIFICATES / "authority.pem"),
    },
    "another host": {
        "ssl_ca_location": AUTHORITY,
        **OWN,
        "ssl_endpoint_identification_algorithm": "https",
        "broker_address_family": "v4",
    },
    "no TLS": {"security_protocol": "PLAINTEXT"},
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_certificates_are_errors_and_disturb_nobody(case: Path, name: str) -> None:
    tls = pylog.jobs.tls_context(
        CERTIFICATES / "server.pem", CERTIFICATES / "server.key", AUTHORITY
    )
    right: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": AUTHORITY, **OWN}
    wrong: dict[str, Any] = {"security_protocol": "SSL", **WRONG[name]}
    with pylog.serve(case, tls=tls, advertised_listener="no-such-host:1") as server:
        address = server.address
        if name == "another host":
            address = address.replace("127.0.0.1", "127.0.0.2")
        with pytest.raises(confluent_kafka.KafkaException):
            _topics(address, 2, **wrong)
        assert _topics(server.address, **right) == ["payments"]


def test_a_client_of_tls_is_refused_where_there_is_none(case: Path) -> None:
    with pylog.serve(case) as server:
        with pytest.raises(confluent_kafka.KafkaException):
            _topics(server.address, 2, security_protocol="SSL", ssl_ca_location=AUTHORITY)
        assert _topics(server.address) == ["payments"]


def test_a_file_that_is_no_certificate_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "none.pem"
    path.write_text("no certificate")
    with pytest.raises(InvalidConfigurationError, match="cannot use it for TLS"):
        pylog.jobs.tls_context(path)


def test_users_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("# readers\nreader:a:b\n\nother:c\n")
    assert pylog.jobs.read_users(path) == {"reader": "a:b", "other": "c"}
    for text, reason in (
        ("reader\n", "line 1 is not of the form"),
        ("a:secret\na:secret\n", "line 2 has user 'a' a second time"),
        ("", "there is no user"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidConfigurationError, match=reason) as failure:
            pylog.jobs.read_users(path)
        assert "secret" not in str(failure.value)
