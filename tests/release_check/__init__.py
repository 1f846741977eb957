"""A dry run of a release: build, look at what was built, install it where nothing is, try it."""
