"""Random batches, and what statistics say of them."""

from __future__ import annotations

NOW_MS = 1_700_000_000_000
