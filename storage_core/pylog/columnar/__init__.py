"""Record batches to Arrow, a window at a time."""
