"""What the server counts, for its status line and for Prometheus."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Metrics:
    """Counts since the server has started; only the event loop changes them."""

    connections: int = 0
    requests: int = 0
    sent_bytes: int = 0
    groups: int = 0

    def prometheus_text(self) -> str:
        """Return the counts in Prometheus' text format."""
        lines = []
        for name, kind, meaning, value in (
            ("connections", "gauge", "Open connections.", self.connections),
            ("groups", "gauge", "Consumer groups with members.", self.groups),
            ("requests_total", "counter", "Requests.", self.requests),
            ("sent_bytes_total", "counter", "Bytes of responses.", self.sent_bytes),
        ):
            lines += [
                f"# HELP pylog_serve_{name} {meaning}",
                f"# TYPE pylog_serve_{name} {kind}",
                f"pylog_serve_{name} {value}",
            ]
        return "\n".join(lines) + "\n"
