"""When work is done, and by which threads: clocks, schedulers, pools."""
