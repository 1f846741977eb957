"""Doctor: what is wrong with a log, a file for each thing that is looked at; the repaired copy."""
