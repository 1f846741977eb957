"""Text for people: sizes, times, counts and instants; names in JSON; what a terminal may get."""
