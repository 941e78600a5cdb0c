"""`python -m linerate` is the same as `linerate`."""

import sys

from linerate.cli import main

if __name__ == "__main__":
    sys.exit(main())
