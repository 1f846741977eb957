"""``python -m benchmarks``: pylog beside its peers on one machine, in one run.

Files, in the order of the data: ``events`` (what a record says), ``batches`` (records to format
v2 bytes and back to boundaries), ``framing`` (Kafka's framing of each codec), ``data_sets`` (the
files under ``build/bench``), ``measuring`` (what a figure is), ``ours`` · ``python_peers`` ·
``codec_alone`` · ``java_peer`` (who reads), ``reading`` (the rounds), ``spark_scan`` ·
``counting`` · ``memory`` · ``start_up`` (the other parts), ``targets`` and ``report`` (the tables).
"""
