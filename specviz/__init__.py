"""See speculative decoding: a drafter and a target run for real, every round becomes a record, every picture is drawn from records."""

__version__ = "0.1.0"
