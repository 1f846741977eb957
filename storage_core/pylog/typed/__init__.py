"""Values with a schema: wire formats, from bytes to Arrow columns and back; no I/O."""
