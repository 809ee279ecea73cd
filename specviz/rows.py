"""Raw logits of a run's telling places, kept in a file beside its trace.

A trace lists the likeliest tokens of a place; what bends temperatures or draws many times needs the whole rows. The
file is NumPy's ``.npz`` without pickles: ``pair`` (), ``ids`` (length,) the prompt and text up to the last place,
``positions`` (places,), ``target`` (places, vocab), ``drafter_ids`` (said,) the ids that the drafter can say and
``drafter`` (places, said), both empty without a drafter's model, ``named`` (tokens,) and ``names`` (tokens,) their
bytes as hexadecimal. Logits are float32 before temperature.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from specviz.trace import Row, Trace

TELLING = 6
NAMED = 64
"""How many of the likeliest tokens of each row have their text in the file."""
Logits = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class RawRows:
    """Rows of one run: of each position (in prompt + text) the target's logits (vocab,) and the drafter's.

    Both float32; minus infinity where the drafter cannot say an id, ``None`` where no model drafted. ``ids`` are prompt
    and text up to the last position, ``names`` the bytes of the likeliest tokens.
    """

    pair: str
    ids: tuple[int, ...]
    target: Mapping[int, Logits]
    drafter: Mapping[int, Logits | None]
    names: Mapping[int, bytes]

    def fits(self, pair: str | None, ids: Sequence[int], position: int) -> bool:
        """Whether a run of ``pair`` with the prompt and text ``ids`` has this very row at ``position``."""
        return position in self.target and pair == self.pair and tuple(ids[:position]) == self.ids[:position]


def telling(trace: Trace) -> tuple[int, ...]:
    """Up to six places that show most, by position.

    The first rejection and the first bonus; of the judged drafts the surest place, the least shared one, the widest one
    of those that are mostly shared, and the one where the target wants most that the drafter cannot say.
    """
    judged = [draft for round_ in trace.rounds for draft in round_.judged if draft.row is not None]
    rejected = [draft.row for draft in judged if draft.fate == "rejected"][:1]
    bonuses = [
        round_.closing.row for round_ in trace.rounds if round_.closing is not None and round_.closing.kind == "bonus"
    ][:1]
    rows = [draft.row for draft in judged]

    def ranked(score: Callable[[Row], float | None]) -> list[Row | None]:
        scored = [(score(row), row) for row in rows if row is not None]
        return [row for said, row in sorted(scored, key=lambda one: -(one[0] or 0.0)) if said is not None]

    rankings = (
        rejected,
        bonuses,
        ranked(lambda row: None if row.entropy_p is None else 1 / (1 + row.entropy_p)),
        ranked(lambda row: row.tv),
        ranked(lambda row: None if row.entropy_p is None or row.tv is None else row.entropy_p * (row.tv < 1 / 3)),
        ranked(lambda row: row.target_mass_elsewhere),
    )
    chosen: list[int] = []
    for ranking in rankings:
        places = [row.position for row in ranking if row is not None and row.position is not None]
        chosen += [place for place in places if place > 0 and place not in chosen][:1]
    return tuple(sorted(chosen))


def save(rows: RawRows, path: Path) -> None:
    """Write ``rows``; only the ids that the drafter can say are kept of its logits."""
    positions = sorted(rows.target)
    drafted = [row for position in positions if (row := rows.drafter[position]) is not None]
    sayable = np.flatnonzero(np.isfinite(drafted[0])) if len(drafted) == len(positions) else np.zeros(0, np.int64)
    with path.open("wb") as file:  # savez would add an ending of its own to a name
        np.savez_compressed(
            file,
            pair=np.array(rows.pair),
            ids=np.array(rows.ids, np.int64),
            positions=np.array(positions, np.int64),
            target=np.stack([rows.target[position] for position in positions]),
            drafter=np.stack([row[sayable] for row in drafted]) if len(sayable) else np.zeros((len(positions), 0)),
            drafter_ids=sayable,
            named=np.array(list(rows.names), np.int64),
            names=np.array([name.hex() for name in rows.names.values()], np.str_),
        )


def read(path: Path) -> RawRows:
    """Read what :func:`save` wrote.

    Raises:
        ValueError: the file is not one of these.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            positions = [int(position) for position in file["positions"]]
            target, sayable = file["target"].astype(np.float32), file["drafter_ids"]
            drafter = np.full(target.shape, -math.inf, np.float32)
            drafter[:, sayable] = file["drafter"]
            target.flags.writeable = drafter.flags.writeable = False  # one reading may serve many
            return RawRows(
                pair=str(file["pair"]),
                ids=tuple(file["ids"].tolist()),
                target=dict(zip(positions, target, strict=True)),
                drafter=dict(zip(positions, drafter if len(sayable) else [None] * len(positions), strict=True)),
                names=dict(zip(file["named"].tolist(), map(bytes.fromhex, file["names"].tolist()), strict=True)),
            )
    except (KeyError, IndexError, EOFError, zipfile.BadZipFile, ValueError, TypeError) as error:
        raise ValueError(f"{path.name} holds no rows of a run: {error}") from None
