"""What Avro's Java library says of schemas, kept as ``java_avro.json``.

Made once by avro-1.12.1.jar, of random schemas of ``tests/support/avro_schemas.py`` with comments,
aliases, namespaces and properties: ``Schema.toString``, and the verdict of
``SchemaCompatibility.checkReaderWriterCompatibility`` on pairs of writer and reader.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

JAVA: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
