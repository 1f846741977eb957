"""Text as people write and read it: instants, names, what may go to a terminal. No I/O."""
