"""``python -m pylog``: the command line, by the interpreter that is named."""

from pylog.cli.entry import main

if __name__ == "__main__":
    main()
