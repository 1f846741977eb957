"""The full-screen browser: screens, the widgets on them, and what they show.

Lower modules do without Textual, which is an optional package: `record_windows` reads, `background`
works in another process, and `cells` makes text that may go to a terminal.
"""
