"""Kinds of prompts, with one that ships of each: the presets of the page, and what a sweep measures with."""

WORKLOADS = {
    "chat": "Tell me a story about a dragon who was afraid of fire.",
    "code": "Write a Python function that checks whether a number is prime.",
    "list": "List ten animals that live in the sea.",
    "repetition": "Repeat this sentence five times: The quick brown fox jumps over the lazy dog.",
    "translation": "Translate into French: The weather is beautiful today and we are going to the beach.",
}
"""A user's message of each kind."""
