"""A read-only view of any directory: whose, live, damaged. Changes nothing, takes no lock."""
