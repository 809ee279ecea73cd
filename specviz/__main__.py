"""``python -m specviz``: see :mod:`specviz.cli.main`."""

import sys

from specviz.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
