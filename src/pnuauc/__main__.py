"""``python -m pnuauc``: the same as ``pnuauc``."""

from pnuauc._cli import main

if __name__ == "__main__":
    main()
