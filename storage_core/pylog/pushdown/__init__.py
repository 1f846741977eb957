"""What query engines push down: their predicates as comparisons, our rows as their sources."""
