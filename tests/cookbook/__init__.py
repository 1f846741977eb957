"""The recipes of ``docs/cookbook.md``: each block is run as it stands there."""
