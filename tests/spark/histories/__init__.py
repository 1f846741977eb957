"""Random histories of real sources, each read by the job, and what its topic must have then."""
