"""Text to token ids, and ids back to raw bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

_BYTE_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")


class Tokenizer:
    """What specviz needs of a tokenizer of transformers.

    Args:
        tokenizer: a tokenizer of transformers.
        name: what to call it in messages.
    """

    def __init__(self, tokenizer: Any, name: str) -> None:
        self.name = name
        self._tokenizer = tokenizer
        self._added: dict[int, str] = {
            token_id: token.content for token_id, token in tokenizer.added_tokens_decoder.items()
        }
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self._byte_level = backend is not None and "ByteLevel" in f"{backend.decoder} {backend.pre_tokenizer}"

    @classmethod
    def load(cls, source: str | Path, *, download: bool = False) -> Tokenizer:
        """The tokenizer in a folder, or of a model of the Hugging Face hub.

        Raises:
            OSError: there is none, or it is not on this machine and ``download`` is false.
        """
        from transformers import AutoTokenizer

        return cls(
            AutoTokenizer.from_pretrained(str(source), local_files_only=not download, trust_remote_code=False),
            name=str(source),
        )

    @cached_property
    def tokens(self) -> dict[int, str]:
        """Every id that means something, with its string as the vocabulary file spells it."""
        return {token_id: token for token, token_id in self._tokenizer.get_vocab().items()} | self._added

    @cached_property
    def real_ids(self) -> int:
        """One more than the largest id: a model's rows from here on are padding."""
        return max(self.tokens) + 1

    @property
    def eos_id(self) -> int | None:
        """The end-of-sequence id."""
        eos: int | None = self._tokenizer.eos_token_id
        return eos

    def encode(self, text: str) -> list[int]:
        """The ids of ``text`` as it stands, behind the model's begin token where it has one."""
        ids: list[int] = self._tokenizer.encode(text)
        return ids

    def chat(self, prompt: str) -> list[int]:
        """The ids of a user's message in the model's chat template, ready for the answer; raw where it has none."""
        if self._tokenizer.chat_template is None:
            return self.encode(prompt)
        ids: list[int] = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], add_generation_prompt=True, return_dict=False
        )
        return ids

    def bytes(self, token_id: int) -> bytes:
        """The raw bytes of one token, which may end inside a character; nothing for an id without a token."""
        token = self.tokens.get(token_id)
        if token is None:
            return b""
        if token_id in self._added:
            return token.encode()
        if self._byte_level:
            return b"".join(_BYTE_OF.get(character) or character.encode() for character in token)
        if escaped := _BYTE_FALLBACK.fullmatch(token):
            return bytes([int(escaped[1], 16)])
        return token.replace("▁", " ").encode()

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids`` as one byte stream; unfinished characters become the replacement character."""
        return b"".join(map(self.bytes, ids)).decode(errors="replace")


def _byte_table() -> dict[str, bytes]:
    """Byte-level BPE spells every byte as one visible character: printable ones as themselves, others from U+0100 on.

    Source: the tokenizer of GPT-2 (Radford et al. 2019).
    """
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): bytes([byte]) for byte in visible} | {chr(256 + i): bytes([b]) for i, b in enumerate(hidden)}


_BYTE_OF = _byte_table()
