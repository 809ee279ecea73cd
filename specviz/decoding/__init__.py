"""The decoder: settings, drafters, and one round at a time."""
