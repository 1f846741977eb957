from __future__ import annotations

from tests.support.spark_session import spark as spark
