"""What a stranger, a full disk and a kill can do to pnuauc: run by ``make attack``.

Not part of the wheel. A short seeded share runs with the tests.
"""
