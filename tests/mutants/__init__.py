"""Random small changes of the code that some test should notice: ``python -m tests.mutants``."""
