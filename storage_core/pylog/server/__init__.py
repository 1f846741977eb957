"""A read-only server that answers Kafka's protocol from log directories."""
