"""Whether records may be appended, and what is known of them then."""
