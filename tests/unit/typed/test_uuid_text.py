from __future__ import annotations

import random
import uuid

import numpy as np

from pylog.typed.uuid_text import uuid_texts


def test_uuids_are_written_as_the_standard_library_does() -> None:
    content = random.Random(3).randbytes(16 * 50)
    expected = [str(uuid.UUID(bytes=content[at : at + 16])) for at in range(0, 800, 16)]
    found = uuid_texts(np.frombuffer(content, np.uint8), 50)
    found.validate(full=True)
    assert found.to_pylist() == expected
