"""How tests start a JVM: it lives for seconds or minutes, beside others on few cores.

There the second compiler takes more time than it saves. With these options a query of Spark's takes
half the processor time, and so does its start.
"""

from __future__ import annotations

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""No second compiler, no parallel collector."""
