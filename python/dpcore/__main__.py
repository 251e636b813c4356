"""Command line of the package: `python -m dpcore`."""

import sys

from .cli.app import main

if __name__ == "__main__":
    sys.exit(main())
