"""From the disks of dead brokers: what is on them, and the way back to a cluster that serves."""
