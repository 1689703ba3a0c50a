"""``python -m pnuauc``: the same as ``pnuauc``."""

import os
import sys

# python -m looks for modules in the current folder first, which may be anybody's; the package
# itself is imported by now and finds its own modules
if sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from pnuauc.cli import main

if __name__ == "__main__":
    main()
