"""pnuauc: rank rare positives when almost nothing is labelled."""

__version__ = "0.1.0"
