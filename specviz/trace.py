"""The records of a run and their file format.

A run is a :class:`Trace`: one :class:`Header` and a tuple of :class:`Round`. Everything that a view draws is read from
these records. They are frozen; a run grows by making a longer trace.

On disk a trace is JSON Lines: the header, then one line a round, with the field names below as keys. Unknown keys are
ignored, missing ones are ``None``: a view greys out what a trace does not carry. Infinities are written as ``null``.
Sizes: about 4 kB a row. All probabilities are in [0, 1]; all times are seconds.
"""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

SCHEMA_VERSION = 1
UNSAID: Mapping[str, Any] = {"ngram": 3, "stop_below": 0.0, "stop_above": None}
"""Settings that records did not name at first, with what was in force."""
LISTED = 12
"""How many of the likeliest tokens of p, and of q, a row lists."""

Fate = Literal["kept", "rejected", "unjudged"]
ClosingKind = Literal["correction", "bonus", "plain"]
Finish = Literal["stop", "length", "context"]


class Within(NamedTuple):
    """What a number in a file may be: bounds, and how they are told."""

    low: float
    high: float
    words: str


LONGEST = 20_000
"""Characters of a text in a file, at most."""


class Meets(NamedTuple):
    """What a text in a file must be: a test, and how it is told."""

    accepts: Callable[[Any], bool]
    words: str


def _is_hex(value: Any) -> bool:
    try:
        bytes.fromhex(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_text(value: Any) -> bool:
    # Half a character, which JSON can spell, would break what sends the text on.
    return isinstance(value, str) and len(value) <= LONGEST and not any("\ud800" <= sign <= "\udfff" for sign in value)


Hex = Annotated[str, Meets(_is_hex, "hexadecimal bytes")]
Text = Annotated[str, Meets(_is_text, f"a text of at most {LONGEST:,} characters")]
Probability = Annotated[float, Within(-1e-9, 1.0 + 1e-9, "a probability in [0, 1]")]
"""Sums over a vocabulary may miss 0 or 1 by their rounding."""
Seconds = Annotated[float, Within(0.0, 1e9, "seconds, 0 or more")]
Nats = Annotated[float, Within(0.0, 1e3, "an entropy in nats, 0 or more")]
Logit = Annotated[float, Within(-1e9, 1e9, "a logit within ±1e9")]
Count = Annotated[int, Within(0, 10**9, "a whole number from 0 to 1e9")]
Gumbel = Annotated[float, Within(-50.0, 50.0, "Gumbel noise within ±50")]
"""A uniform of 52 bits gives −3.6 to 36.8."""


@dataclass(frozen=True, slots=True)
class Token:
    """One listed token of a row. ``p`` and ``q`` are its probabilities after temperature, top-k and top-p.

    ``bytes`` is the token's text as hexadecimal UTF-8 bytes, which may end inside a character. The logits are before
    temperature; ``None`` stands for minus infinity (an id that the drafter cannot say). ``noise`` is the Gumbel value
    that both models share at this position, where the rule uses one.
    """

    id: int
    bytes: Hex | None = None
    p: Probability | None = None
    q: Probability | None = None
    target_logit: Logit | None = None
    drafter_logit: Logit | None = None
    noise: Gumbel | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """Everything that a row does not list: how many ids, their mass under p and under q, and sum min(p, q) over
    them.

    Where both models share noise, ``runner`` is the id of the rest with the largest log p + noise and
    ``drafter_runner`` the one with the largest log q + noise, often the same: the best that the rest had in either
    race. ``None`` where nothing of the rest can be said.
    """

    count: int | None = None
    p: Probability | None = None
    q: Probability | None = None
    overlap: Probability | None = None
    runner: Token | None = None
    drafter_runner: Token | None = None

    def runners(self) -> tuple[Token, ...]:
        """The best of the rest in the target's race and in the drafter's, each id once."""
        known = {token.id: token for token in (self.runner, self.drafter_runner) if token is not None}
        return tuple(known.values())


@dataclass(frozen=True, slots=True)
class Row:
    """Both models' laws at one position; the scalars come from the whole vocabulary.

    ``position`` is the index, from 0 in prompt + text, of the token that these laws are about. ``tv`` is the total
    variation distance; ``expected_accept`` the rule's chance of keeping a draft here before the draft is drawn
    (``None`` where the rule has none). Entropies are in nats. ``target_top2`` holds [id, logit] of the target's two
    largest logits. The log-normalisers turn listed logits into the laws before any temperature: softmax = exp(logit -
    normaliser). A row without a drafter (plain decoding, the bonus row) has ``None`` for every q.

    ``drafter_ids`` is how many ids of the vocabulary the drafter's model can say at all, at least 1, and
    ``target_mass_elsewhere`` the target's mass, in [0, 1], on the ids that it cannot: 0.0 where it can say everything,
    ``None`` for both where no model drafted.
    """

    position: int | None = None
    tokens: tuple[Token, ...] = ()
    rest: Rest | None = None
    tv: Probability | None = None
    expected_accept: Probability | None = None
    entropy_p: Nats | None = None
    entropy_q: Nats | None = None
    target_top2: tuple[tuple[int, Logit | None], ...] | None = None
    target_log_normaliser: Logit | None = None
    drafter_log_normaliser: Logit | None = None
    drafter_ids: int | None = None
    target_mass_elsewhere: Probability | None = None

    def token(self, token_id: int) -> Token | None:
        """The listed token with this id, or None."""
        return next((token for token in self.tokens if token.id == token_id), None)


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted token and the evidence for its fate.

    ``accept_prob`` is the chance of being kept given this draft, before coin or noise is seen. Exactly one of ``coin``
    (a uniform in (0, 1)) and ``target_id`` (the token the target chose itself) is set for a judged draft; under block
    verification the coin is set for every draft. ``passed`` is the outcome of the draft's own test and ``weight`` block
    verification's w. ``fate``: *unjudged* drafts were written to follow a token that is gone.
    """

    id: int
    p: Probability | None = None
    q: Probability | None = None
    accept_prob: Probability | None = None
    coin: Probability | None = None
    target_id: int | None = None
    passed: bool | None = None
    weight: Probability | None = None
    fate: Fate | None = None
    row: Row | None = None


@dataclass(frozen=True, slots=True)
class Closing:
    """The last token of a round: a correction after a rejection, a bonus after a full accept, plain without drafts.

    ``draw`` is the uniform it was drawn with (``None`` where the rule used none). ``law`` lists [id, probability] of
    the law it was drawn from, likeliest first, and ``law_rest`` the mass not listed. ``row`` is set for bonus and
    plain; a correction stands at the rejected draft's row.
    """

    id: int
    kind: ClosingKind | None = None
    draw: Probability | None = None
    row: Row | None = None
    law: tuple[tuple[int, Probability], ...] | None = None
    law_rest: Probability | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """One read of a model: how many tokens it was fed, how many stood in its cache before, and the forward's
    seconds."""

    model: Literal["target", "drafter"] | None = None
    kind: Literal["prefill", "draft", "verify"] | None = None
    query_tokens: Count | None = None
    context: Count | None = None
    seconds: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One round: gamma drafts, one read of the target, the verdict, the closing token.

    ``position`` is where the first draft (or, without drafts, the closing token) stands. ``emitted`` are the ids that
    entered the text: the kept drafts and the closing token, cut behind a stop token. In a round that a stop token cut,
    drafts behind it are unjudged and ``closing`` is ``None``. ``settings`` are the settings in force, as a plain
    mapping. ``seconds`` covers drafting, verification and the rule, without building this record.

    ``after`` is the target's row behind the last draft, asked in every round with drafts and used only if all stay:
    ``None`` where the closing token is a bonus, which carries this row, and without drafts. In a round that did not
    keep all its drafts it follows tokens that are gone: no row of the text. ``after_id`` is the bonus that the round's
    noise draws there, the closing token where all stayed; ``None`` under rules without coins.
    """

    index: int
    position: int
    settings: Mapping[str, Any] | None = None
    drafts: tuple[Draft, ...] = ()
    closing: Closing | None = None
    emitted: tuple[int, ...] = ()
    finish: Finish | None = None
    passes: tuple[Pass, ...] = ()
    seconds: Seconds | None = None
    after: Row | None = None
    after_id: int | None = None

    @property
    def kept(self) -> int:
        """Number of kept drafts."""
        return sum(draft.fate == "kept" for draft in self.drafts)

    @property
    def said(self) -> Mapping[str, Any]:
        """The settings in force, those too that a record did not name at first; empty where it names none."""
        return {**UNSAID, **self.settings} if self.settings else {}

    @property
    def gave_up(self) -> bool:
        """Whether the drafter ended the draft itself: its last read brought no draft."""
        return sum(one.model == "drafter" and one.kind == "draft" for one in self.passes) > len(self.drafts)

    @property
    def judged(self) -> tuple[Draft, ...]:
        """The drafts that were kept or rejected."""
        return tuple(draft for draft in self.drafts if draft.fate in ("kept", "rejected"))

    @property
    def last_row(self) -> Row | None:
        """The last row of the round's read, behind all its drafts, whatever became of them."""
        if self.after is not None or self.closing is None:
            return self.after
        return self.closing.row

    def rows(self) -> tuple[Row, ...]:
        """All rows of the round's read, in order of position; the text need not have come by the later ones."""
        rows = (*(draft.row for draft in self.drafts), self.last_row)
        return tuple(row for row in rows if row is not None)


@dataclass(frozen=True, slots=True)
class Header:
    """What ran: the pair, the machine, the prompt, the limits.

    ``prompt_bytes`` are the prompt tokens' texts as in :class:`Token`; ``listed`` is how many likeliest tokens of each
    law every row lists. ``created`` is an ISO 8601 time.
    """

    kind: Literal["header"] = "header"
    schema_version: int = SCHEMA_VERSION
    pair: str | None = None
    drafter: str | None = None
    device: str | None = None
    dtype: str | None = None
    threads: int | None = None
    versions: Mapping[str, str] | None = None
    prompt: str | None = None
    prompt_ids: tuple[int, ...] = ()
    prompt_bytes: tuple[Hex, ...] | None = None
    stop_ids: tuple[int, ...] = ()
    max_new_tokens: int | None = None
    listed: int | None = None
    created: str | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A run: its header and its rounds so far."""

    header: Header
    rounds: tuple[Round, ...] = ()

    def __post_init__(self) -> None:
        position = len(self.header.prompt_ids)
        for index, round_ in enumerate(self.rounds):
            _check_place(round_, index, position)
            position += len(round_.emitted)

    @property
    def text_ids(self) -> tuple[int, ...]:
        """Ids of the text after the prompt."""
        return tuple(token_id for round_ in self.rounds for token_id in round_.emitted)

    @property
    def finish(self) -> Finish | None:
        """Why the run ended, or None while it can go on."""
        return self.rounds[-1].finish if self.rounds else None

    def with_round(self, round_: Round) -> Trace:
        """A longer trace; this one stays as it is."""
        return Trace(self.header, (*self.rounds, round_))

    def cut(self, rounds: int) -> Trace:
        """The first ``rounds`` rounds."""
        return Trace(self.header, self.rounds[:rounds])

    def token_bytes(self) -> dict[int, bytes]:
        """The text of every token that the trace names, by id."""
        known: dict[int, bytes] = {}
        if self.header.prompt_bytes is not None:
            known.update(zip(self.header.prompt_ids, map(bytes.fromhex, self.header.prompt_bytes), strict=False))
        for round_ in self.rounds:
            for row in round_.rows():
                named = (*row.tokens, *(row.rest.runners() if row.rest is not None else ()))
                known.update({token.id: bytes.fromhex(token.bytes) for token in named if token.bytes is not None})
        return known


def _check_place(round_: Round, index: int, position: int) -> None:
    """A round must be the one that the rounds before it lead to."""
    if round_.index != index:
        raise ValueError(f"round {index} of the trace calls itself {round_.index}")
    if round_.position != position:
        raise ValueError(f"round {index} starts at position {round_.position}, expected {position}")


# --- counts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over some rounds; every rate is named by its fraction, and ``None`` where its denominator is empty.

    alpha = mean of sum min(p, q) over *judged* positions. tested = kept/(kept + rejected). drafted = kept/drafted.
    tokens_per_pass = emitted / target passes. Prefills count in none of them.
    """

    rounds: int
    drafted: int
    kept: int
    rejected: int
    emitted: int
    target_passes: int
    alpha: float | None
    expected_kept: float | None
    expected_kept_variance: float | None
    kept_at_least: tuple[int, ...]
    """Rounds that kept at least 1, 2, ... drafts: unconditional, by place."""
    judged_at: tuple[int, ...]
    """Rounds that judged place 1, 2, ...: the denominators of the conditional rates."""

    @property
    def judged(self) -> int:
        """kept + rejected."""
        return self.kept + self.rejected

    @property
    def tested_rate(self) -> float | None:
        """kept / (kept + rejected)."""
        return _ratio(self.kept, self.judged)

    @property
    def drafted_rate(self) -> float | None:
        """kept / drafted (vLLM's and llama.cpp's "acceptance rate")."""
        return _ratio(self.kept, self.drafted)

    @property
    def tokens_per_pass(self) -> float | None:
        """emitted / target passes."""
        return _ratio(self.emitted, self.target_passes)


def tally(rounds: Iterable[Round]) -> Tally:
    """Count kept, rejected and emitted tokens over ``rounds``.

    ``expected_kept`` is the sum of ``expected_accept`` over the judged positions and ``expected_kept_variance`` the sum
    of its e(1 - e): each judged position is a Bernoulli trial given its context. Both are ``None`` as soon as one
    judged position does not carry the figure (block verification has none).
    """
    rounds = list(rounds)
    judged = [draft for round_ in rounds for draft in round_.judged]
    drafted = sum(len(round_.drafts) for round_ in rounds)
    longest = max((len(round_.drafts) for round_ in rounds), default=0)
    # A sum over a vocabulary may miss 0 or 1 by its rounding; a rate is a rate.
    shared = [_rate(1.0 - draft.row.tv) for draft in judged if draft.row is not None and draft.row.tv is not None]
    expected = [
        _rate(draft.row.expected_accept)
        for draft in judged
        if draft.row is not None and draft.row.expected_accept is not None
    ]
    known = bool(judged) and len(expected) == len(judged)
    return Tally(
        rounds=len(rounds),
        drafted=drafted,
        kept=sum(round_.kept for round_ in rounds),
        rejected=sum(draft.fate == "rejected" for draft in judged),
        emitted=sum(len(round_.emitted) for round_ in rounds),
        target_passes=sum(p.model == "target" and p.kind == "verify" for round_ in rounds for p in round_.passes),
        alpha=sum(shared) / len(shared) if shared and len(shared) == len(judged) else None,
        expected_kept=sum(expected) if known else None,
        expected_kept_variance=sum(e * (1.0 - e) for e in expected) if known else None,
        kept_at_least=tuple(sum(round_.kept >= i for round_ in rounds) for i in range(1, longest + 1)),
        judged_at=tuple(sum(len(round_.judged) >= i for round_ in rounds) for i in range(1, longest + 1)),
    )


def _rate(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None


# --- file format ------------------------------------------------------------------------------------------------------

T = TypeVar("T")


def dump(trace: Trace) -> str:
    """The trace as JSON Lines, ending in a newline."""
    return "".join(
        json.dumps(plain(record), ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"
        for record in (trace.header, *trace.rounds)
    )


def load(text: str) -> Trace:
    """Read what :func:`dump` wrote.

    Raises:
        ValueError: naming the line that is not JSON, lacks a needed key, has a value of the wrong type, or does not
            follow the line before.
    """
    header: Header | None = None
    rounds: list[Round] = []
    position = 0
    for number, line in _numbered_lines(text.removeprefix("\ufeff")):  # a mark that some editors write
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError(f"expected an object, got {type(record).__name__}")
            if header is None:
                if record.get("kind") != "header":
                    raise ValueError('expected the header (kind "header") first')
                header = from_plain(Header, record)
                if header.schema_version > SCHEMA_VERSION:
                    raise ValueError(
                        f"schema_version {header.schema_version}; this program reads up to {SCHEMA_VERSION}"
                    )
                position = len(header.prompt_ids)
            else:
                round_ = from_plain(Round, record)
                _check_place(round_, len(rounds), position)
                position += len(round_.emitted)
                rounds.append(round_)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number}: not JSON, {error.msg.lower()} at column {error.colno}") from None
        except RecursionError:
            raise ValueError(f"line {number}: nested too deeply") from None
        except (ValueError, TypeError) as error:
            raise ValueError(f"line {number}: {error}") from None
    if header is None:
        raise ValueError("line 1: the file is empty; expected a header line")
    return Trace(header, tuple(rounds))


def save(trace: Trace, path: Path) -> None:
    """Write the trace to ``path`` as JSON Lines."""
    path.write_text(dump(trace), encoding="utf-8")


def read(path: Path) -> Trace:
    """Read a trace file; see :func:`load`. Bytes that are not UTF-8 are a ValueError that names their line, too."""
    content = path.read_bytes()
    try:
        return load(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        raise ValueError(f"line {line}: expected UTF-8 text, got the byte 0x{content[error.start]:02x}") from None


def _numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    # Only "\n" ends a record: JSON strings may hold other characters that str.splitlines takes for line ends.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


def plain(value: Any) -> Any:
    """What JSON can hold: dataclasses to dictionaries, tuples to lists, infinities to None."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return value


def from_plain(kind: type[T], record: Mapping[str, Any]) -> T:
    """Build a dataclass from a JSON object. Unknown keys are left alone; null is as good as missing.

    Raises:
        ValueError: a needed key is missing, or a value is not what its annotation asks for; names the key.
    """
    built: T = _reader(typing.cast(typing.Hashable, kind))(record, kind.__name__.lower())
    return built


@cache
def _reader(kind: Any) -> Callable[[Any, str], Any]:
    """A function that checks and converts one JSON value to the annotated type ``kind``.

    Compiled once for each type: reading a run of 256 tokens converts some ten thousand values.
    """
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass_reader(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        inner = _reader(next(argument for argument in arguments if argument is not types.NoneType))
        return lambda value, name: None if value is None else inner(value, name)
    if origin is Annotated:
        kind, meant = arguments
        return _checked(_in(kind, meant) if isinstance(meant, Within) else meant.accepts, meant.words)
    if origin is Literal:
        return _checked(lambda value: value in arguments, " or ".join(map(str, arguments)))
    if origin is tuple:
        return _tuple_reader(arguments)
    if kind is Any:
        return lambda value, name: value
    if origin is not None:
        return _mapping_reader(*arguments)
    if kind is float:  # JSON as Python reads it knows NaN and infinities; a trace does not
        return _checked(
            lambda value: type(value) in (int, float) and abs(value) <= sys.float_info.max, "a finite number"
        )
    return _checked(lambda value: type(value) is kind, kind.__name__)


def _in(kind: type, bounds: Within) -> Callable[[Any], bool]:
    # Comparisons with NaN are false; infinities lie outside every bound.
    kinds = (int,) if kind is int else (int, float)
    return lambda value: type(value) in kinds and bounds.low <= value <= bounds.high


def _checked(accepts: Callable[[Any], bool], wanted: str) -> Callable[[Any, str], Any]:
    def read_value(value: Any, name: str) -> Any:
        if not accepts(value):
            raise ValueError(f"{name} must be {wanted}, got {value!r:.60}")
        return value

    return read_value


def _tuple_reader(arguments: tuple[Any, ...]) -> Callable[[Any, str], Any]:
    if arguments[-1] is Ellipsis:
        item = _reader(arguments[0])

        def read_many(value: Any, name: str) -> Any:
            if not isinstance(value, list):
                raise ValueError(f"{name} must be a list, got {value!r:.60}")
            return tuple([item(one, name) for one in value])

        return read_many
    items = [_reader(argument) for argument in arguments]

    def read_fixed(value: Any, name: str) -> Any:
        if not isinstance(value, list) or len(value) != len(items):
            raise ValueError(f"{name} must be a list of {len(items)}, got {value!r:.60}")
        return tuple([item(one, name) for item, one in zip(items, value, strict=True)])

    return read_fixed


def _mapping_reader(key: Any, kind: Any) -> Callable[[Any, str], Any]:
    item = _reader(kind)

    def read_mapping(value: Any, name: str) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} must be an object, got {value!r:.60}")
        if key is int and not all(one.isdecimal() and len(one) < 10 for one in value):  # JSON has no other keys
            raise ValueError(f"the keys of {name} must be whole numbers")
        if not all(map(_is_text, value)):
            raise ValueError(f"the keys of {name} must be texts")
        return {key(one): item(held, f"{name}.{one:.20}") for one, held in value.items()}

    return read_mapping


def _dataclass_reader(kind: type) -> Callable[[Any, str], Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    readers = [(field.name, _reader(hints[field.name])) for field in fields(kind)]
    needed = [field.name for field in fields(kind) if field.default is MISSING]

    def read_object(value: Any, name: str) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{name} must be an object, got {value!r:.60}")
        for key in needed:
            if value.get(key) is None:
                raise ValueError(f"{name}.{key} is missing")
        # A key that is there but null means the same as one that is missing.
        return kind(
            **{key: reader(value[key], f"{name}.{key}") for key, reader in readers if value.get(key) is not None}
        )

    return read_object
