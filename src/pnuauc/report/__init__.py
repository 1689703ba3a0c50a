"""Findings -> text, JSON, HTML. Nothing is computed here, only said."""
