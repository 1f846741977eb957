"""The recipes of ``docs/cookbook.md`` and ``README.md``: each is run as it stands there."""
