"""What Kafka's Admin client would describe: groups, topics, transactions, log directories."""
