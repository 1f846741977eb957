"""Jobs for ``spark-submit``: one module a job. The package itself imports nothing."""
