"""What exists only for Spark's versions and modes, and for the Python processes that it starts.

| module | why | may go |
|---|---|---|
| stand_ins | Spark 4.0 and 4.1 lack read limits and Arrow stream writers | with Spark 4.1 |
| pushed_filters | Spark 4.1 to 4.3 share one reader between scans | when no supported Spark does |
| classic_plan, connect_plan | predicates of `table` without ``pushFilters`` | with the above |
| writing_threads | Spark's writers find no Python data source in other threads | when they do |
| worker_python, worker_process | the processes that Spark starts | stays |
"""
