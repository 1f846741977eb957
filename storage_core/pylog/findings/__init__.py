"""Findings of the doctor: one in `finding`, and every kind of them, declared once, in `kinds`."""
