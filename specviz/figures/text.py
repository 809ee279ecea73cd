"""Tokens as text that can be seen, and never as anything else.

Everything returned here is plain text for ``textContent``: spaces, line ends, control and direction marks are made
visible, bytes that do not (yet) make a character are shown as hexadecimal.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Callable, Iterable, Mapping

from specviz.trace import Trace

MARKS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍", "\u00a0": "⍽"}
HIDDEN = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn", "Zs"}
"""Unicode categories that would not be seen, or would change how their neighbours are seen."""
JOINERS = "\u200d\ufe0f"
"""Parts of an emoji, not a way to hide something: they stay where a character stands before them."""


def _hex(raw: bytes) -> str:
    return f"⟨{raw.hex(' ').upper()}⟩" if raw else ""


def visible(text: str) -> str:
    """``text`` with everything invisible made visible; lone surrogates (undecodable bytes) become hexadecimal."""
    shown: list[str] = []
    for character in text:
        if character in MARKS:
            shown.append(MARKS[character])
        elif "\udc80" <= character <= "\udcff":
            shown.append(_hex(bytes([ord(character) - 0xDC00])))
        elif unicodedata.category(character) in HIDDEN and not (character in JOINERS and shown):
            shown.append(f"⟨U+{ord(character):04X}⟩")
        elif unicodedata.combining(character) and not shown:
            shown.append("◌" + character)
        else:
            shown.append(character)
    return "".join(shown).replace("⟩⟨", " ")


def prose(text: str, most: int = 300) -> str:
    """``text`` made visible, its spaces still spaces, cut behind ``most`` characters."""
    return " ".join(map(visible, text[:most].split(" "))) + (" …" if len(text) > most else "")


def token(raw: bytes) -> str:
    """One token on its own."""
    return visible(raw.decode("utf-8", "surrogateescape")) or "⟨⟩"


class Reader:
    """Reads tokens one after another as one stream of bytes.

    A character that is spread over several tokens belongs to the one that completes it.
    """

    def __init__(self, pending: bytes = b"") -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._decoder.decode(pending)

    @property
    def pending(self) -> bytes:
        """Bytes read so far that may begin a character."""
        return self._decoder.getstate()[0]

    def piece(self, raw: bytes) -> str:
        """The characters that this token completes; empty when it only begins one."""
        owed = len(self.pending)
        text = self._decoder.decode(raw)
        # The bytes of a character that never came were shown with the token that began it.
        while owed and text[:1] >= "\udc80" and text[:1] <= "\udcff":
            text, owed = text[1:], owed - 1
        return text

    def label(self, raw: bytes) -> str:
        """The piece made visible; for a token that only begins a character, its bytes."""
        text = visible(self.piece(raw))
        begun = self.pending[-len(raw) :] if raw else b""
        return text + _hex(begun) or "⟨⟩"


class Texts:
    """The texts of a trace's tokens by id."""

    def __init__(self, known: Mapping[int, bytes], other: Callable[[int], bytes] | None = None) -> None:
        """``known`` are the tokens' bytes; ``other`` is asked for ids that are not among them."""
        self._known = known
        self._other = other or (lambda token_id: f"#{token_id}".encode())

    @classmethod
    def of(cls, trace: Trace) -> Texts:
        """All texts that the trace carries."""
        return cls(trace.token_bytes())

    def raw(self, token_id: int) -> bytes:
        """The token's bytes; ``#id`` where nobody knows."""
        found = self._known.get(token_id)
        return self._other(token_id) if found is None else found

    def __call__(self, token_id: int) -> str:
        """The token on its own, made visible."""
        return token(self.raw(token_id))

    def tail(self, token_ids: Iterable[int], characters: int = 24) -> str:
        """The end of a text as prose, cut at a word, "… " before it where something was left out."""
        text = b"".join(map(self.raw, token_ids)).decode("utf-8", "replace")
        words = " ".join(visible(word) for word in text.split())
        if len(words) <= characters:
            return words
        return "… " + words[-characters:].partition(" ")[2] if " " in words[-characters:] else "…" + words[-characters:]
