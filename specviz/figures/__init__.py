"""Records in, layout out: pure functions without a model, a clock or a browser."""
