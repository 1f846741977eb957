"""Kafka's own classes and ours over the same log directories; what they leave is compared."""
