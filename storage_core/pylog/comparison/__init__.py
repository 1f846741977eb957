"""Logs of one partition held against each other, batch by batch."""
