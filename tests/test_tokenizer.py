"""Bytes are what a token adds to the text: joined, they are the text, whatever the tokenizer's own spelling."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from specviz.models.tokenizer import Tokenizer
from tests import tiny_models

byte_level = Tokenizer(tiny_models.tokenizer(), "tiny")


def sentencepiece() -> Tokenizer:
    """A vocabulary as Llama 2 spells it: ▁ for a space, <0xNN> for a byte, added tokens as they stand."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁the", "▁", "cat"]
    backend = Backend(
        models.BPE({piece: i for i, piece in enumerate(pieces)}, [], unk_token="<unk>", byte_fallback=True)
    )
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return Tokenizer(
        PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>"),
        "pieces",
    )


@given(st.text())
def test_bytes_of_the_ids_are_the_text(text: str) -> None:
    """Any text, also characters of several tokens and what looks like a special token."""
    ids = byte_level.encode(text)
    assert b"".join(map(byte_level.bytes, ids)) == text.encode()
    assert byte_level.decode(ids) == text


def test_every_byte_has_a_token() -> None:
    assert {bytes([byte]) for byte in range(256)} <= {byte_level.bytes(i) for i in byte_level.tokens}


def test_half_a_character_is_its_raw_bytes() -> None:
    """A character of four bytes: its tokens are no text of their own, and cut it decodes to one replacement."""
    ids = byte_level.encode("😀")
    assert len(ids) > 1
    assert "😀".encode().startswith(byte_level.bytes(ids[0]))
    assert byte_level.decode(ids[:-1]) == "�"
    assert byte_level.decode(ids) == "😀"


def test_special_tokens_are_their_literal_text() -> None:
    assert byte_level.bytes(0) == b"<|end|>"
    assert byte_level.decode([1, 0]) == "<|begin|><|end|>"


def test_an_id_without_a_token_adds_nothing() -> None:
    assert byte_level.bytes(10**6) == b""


def test_sentencepiece_spellings() -> None:
    pieces = sentencepiece()
    at = {token: i for i, token in pieces.tokens.items()}
    assert pieces.bytes(at["▁the"]) == b" the"
    assert pieces.bytes(at["<0xF0>"]) == b"\xf0"
    assert pieces.bytes(at["</s>"]) == b"</s>"
    assert pieces.decode([at["cat"], at["▁"], *(at[f"<0x{byte:02X}>"] for byte in "é".encode())]) == "cat é"


def test_a_byte_level_vocabulary_may_hold_a_lower_one_eighth_block() -> None:
    """▁ is a space in sentencepiece only; here it is a character of three bytes."""
    assert byte_level.decode(byte_level.encode("▁")) == "▁"


def test_chat_ends_where_the_answer_begins() -> None:
    assert byte_level.decode(byte_level.chat("Hi <b>")) == "<|begin|>user\nHi <b><|end|>\n<|begin|>assistant\n"


def test_chat_without_a_template_is_raw() -> None:
    pieces = sentencepiece()
    assert pieces.chat("cat") == pieces.encode("cat")


def test_real_ids_end_behind_the_last_token() -> None:
    assert byte_level.real_ids == len(byte_level.tokens) == 320
    assert byte_level.tokens[319]
    assert byte_level.eos_id == 0


def test_a_saved_tokenizer_is_the_same(tmp_path: Path) -> None:
    tiny_models.tokenizer().save_pretrained(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.tokens == byte_level.tokens
    assert loaded.chat("a dog") == byte_level.chat("a dog")
    assert loaded.name == str(tmp_path)


def test_a_folder_without_a_tokenizer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises((OSError, ValueError)):
        Tokenizer.load(tmp_path)
