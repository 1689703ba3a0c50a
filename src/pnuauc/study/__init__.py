"""A study: from a table to a model and to everything there is to say about it."""
