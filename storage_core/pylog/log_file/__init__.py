"""The batches of a ``.log`` file: walked header by header, or read window by window."""
