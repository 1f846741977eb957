"""File systems as they are made, without what the environment says."""

from __future__ import annotations

KEY = "a2V5"
