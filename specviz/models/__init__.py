"""Pairs on offer, their weights, their vocabularies, and the one class that knows the KV cache."""
