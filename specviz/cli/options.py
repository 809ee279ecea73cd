"""Options that can be refused before the weights are read."""

from __future__ import annotations

from specviz.trace import LONGEST


def check_text(prompt: str, max_new_tokens: object) -> None:
    """Refuse a prompt that says nothing, and a budget that no text can have.

    Raises:
        ValueError: names the option.
    """
    if not prompt.strip():
        raise ValueError(f"--prompt must not be empty, got {prompt!r}")
    if len(prompt) > LONGEST:
        raise ValueError(f"--prompt must have at most {LONGEST:,} characters, got {len(prompt):,}")
    if not isinstance(max_new_tokens, int) or max_new_tokens < 1:
        raise ValueError(f"--max-new-tokens must be a whole number from 1, got {max_new_tokens!r}")
