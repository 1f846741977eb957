"""The documentation site: ``make docs`` builds it, in an environment of its own, and checks it.

`page_tree` lays out what the generator reads, `counted_tests` counts the tests for the page about
them, and `built_links` follows every link of the pages that came of it. Nothing of the packages is
imported here, nor anything that is not in the standard library: the generator's environment has
neither.
"""
