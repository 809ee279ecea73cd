"""The rows beside a recording: they are the record's own, whole, and a file that is none of these is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specviz import rows, trace
from specviz.cli.main import main
from specviz.models import catalogue
from specviz.probability import warp
from specviz.rows import RawRows
from specviz.trace import Row, Trace
from tests.decoding_runs import decode, tiny_pair
from tests.table_models import TablePair, random_table

ASSETS = Path(__file__).parent.parent / "assets" / "traces"
RECORDED = trace.read(ASSETS / "sampling.jsonl")
SHIPPED = rows.read(ASSETS / "sampling.rows.npz")


def ids_of(run: Trace) -> tuple[int, ...]:
    return *run.header.prompt_ids, *run.text_ids


def rows_of(run: Trace) -> dict[int, Row]:
    """The rows of the text's own places by position."""
    found = {}
    for round_ in run.rounds:
        placed = [draft.row for draft in round_.drafts][: len(round_.emitted)]
        placed += [round_.closing.row] if round_.closing is not None and round_.closing.row is not None else []
        found |= {row.position: row for row in placed if row is not None}
    return found


# --- the file that ships ----------------------------------------------------------------------------------------------


def test_shipped_logits_warp_to_the_recorded_laws() -> None:
    settings, recorded = RECORDED.rounds[0].said, rows_of(RECORDED)
    assert len(SHIPPED.target) == rows.TELLING
    for position, logits in SHIPPED.target.items():
        assert SHIPPED.fits(RECORDED.header.pair, ids_of(RECORDED), position)
        p = warp(logits.astype(np.float64), settings["temperature"], settings["top_k"], settings["top_p"])
        own = SHIPPED.drafter[position]
        assert own is not None
        q = warp(own.astype(np.float64), settings["drafter_temperature"], settings["top_k"], settings["top_p"])
        row = recorded[position]
        for token in row.tokens:
            assert p[token.id] == pytest.approx(token.p, abs=1e-6)
            assert token.q is None or q[token.id] == pytest.approx(token.q, abs=1e-6)
        if row.tv is not None:
            assert float(np.maximum(p - q, 0).sum()) == pytest.approx(row.tv, abs=1e-5)
            assert np.isfinite(own).sum() == row.drafter_ids


def test_shipped_places_are_the_telling_ones_and_small() -> None:
    assert tuple(SHIPPED.target) == rows.telling(RECORDED)
    assert (ASSETS / "sampling.rows.npz").stat().st_size <= 1_500_000
    fates = {row.position: draft.fate for r in RECORDED.rounds for draft in r.judged if (row := draft.row) is not None}
    said = [fates.get(position, "bonus") for position in SHIPPED.target]
    assert {"kept", "rejected", "bonus"} <= set(said)
    recorded = rows_of(RECORDED)
    apart = [recorded[position].tv for position in SHIPPED.target if recorded[position].tv is not None]
    assert max(apart) > 0.99
    assert min(apart) < 0.05


def test_the_likeliest_tokens_have_their_bytes_in_the_file() -> None:
    known = RECORDED.token_bytes()
    assert all(SHIPPED.names.get(token_id, raw) == raw for token_id, raw in known.items())
    for logits in SHIPPED.target.values():
        assert set(np.argsort(-logits)[: rows.NAMED - 1].tolist()) <= set(SHIPPED.names)


# --- which places -----------------------------------------------------------------------------------------------------


def test_telling_places_are_places_of_the_text_in_order_and_hold_the_first_rejection_and_the_first_bonus() -> None:
    run = decode(TablePair(random_table(0, 6), random_table(1, 6), 6), 40, gamma=3, seed=3)
    chosen = rows.telling(run)
    assert len(chosen) == rows.TELLING
    assert list(chosen) == sorted(set(chosen))
    assert set(chosen) <= set(range(len(run.header.prompt_ids), len(ids_of(run))))
    dead = next(r for r in run.rounds if r.kept < len(r.drafts))
    full = next(r for r in run.rounds if r.drafts and r.kept == len(r.drafts))
    assert {dead.position + dead.kept, full.position + full.kept} <= set(chosen)


def test_a_run_without_drafts_has_no_telling_place() -> None:
    run = decode(TablePair(random_table(0, 6), vocab_size=6), 8, gamma=0)
    assert rows.telling(run) == rows.telling(Trace(run.header)) == ()


# --- the file ---------------------------------------------------------------------------------------------------------


def some(drafted: bool = True) -> RawRows:
    rng = np.random.default_rng(0)
    target = {position: rng.normal(size=9).astype(np.float32) for position in (2, 5)}
    silent = np.isin(np.arange(9), [1, 7])
    drafter = {
        at: np.where(silent, -np.inf, row + 1).astype(np.float32) if drafted else None for at, row in target.items()
    }
    return RawRows("embedded", (3, 1, 4, 1, 5), target, drafter, {0: b"\x00", 4: b" caf\xc3"})


@pytest.mark.parametrize("drafted", [True, False])
def test_what_was_saved_is_read_again(drafted: bool, tmp_path: Path) -> None:
    wanted, path = some(drafted), tmp_path / "rows.npz"
    rows.save(wanted, path)
    found = rows.read(path)
    assert (found.pair, found.ids, found.names) == (wanted.pair, wanted.ids, wanted.names)
    for position in (2, 5):
        assert np.array_equal(found.target[position], wanted.target[position])
        own = wanted.drafter[position]
        assert found.drafter[position] is None if own is None else np.array_equal(found.drafter[position], own)


def test_rows_fit_a_run_of_the_same_pair_with_the_same_text_before() -> None:
    found = some()
    assert found.fits("embedded", (3, 1, 4, 1, 5, 9), 5)
    assert found.fits("embedded", (3, 1, 7, 7, 7), 2), "what comes behind the place does not matter"
    assert not found.fits("embedded", (3, 1, 7, 7, 7), 5)
    assert not found.fits("embedded", (3, 1, 4), 5)
    assert not found.fits("other", (3, 1, 4, 1, 5, 9), 5)
    assert not found.fits("embedded", (3, 1, 4, 1, 5, 9), 3)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x93NUMPY", b"{}"])
def test_another_file_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "strange.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"strange\.npz holds no rows"):
        rows.read(path)


def test_a_file_that_lacks_something_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "strange.npz"
    np.savez(
        path, positions=np.array([1]), target=np.zeros((1, 3)), drafter_ids=np.array([9]), drafter=np.zeros((1, 1))
    )
    with pytest.raises(ValueError, match=r"strange\.npz holds no rows"):
        rows.read(path)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of a tiny pair, which the command then finds under the run's pair."""
    pair = tiny_pair()
    monkeypatch.setattr(catalogue, "find", lambda pair_id: pair.spec)
    monkeypatch.setattr("specviz.cli.rows.load_pair", lambda spec, **options: pair)
    path = tmp_path / "run.jsonl"
    trace.save(decode(pair, 20, "The dog", gamma=3, seed=1), path)
    return path


def test_the_command_writes_the_rows_of_the_places_named(recorded: Path, tmp_path: Path) -> None:
    run, out = trace.read(recorded), tmp_path / "rows.npz"
    position = len(run.header.prompt_ids) + 2
    assert main(["rows", str(recorded), "--out", str(out), "--position", str(position), str(position + 3)]) == 0
    found = rows.read(out)
    assert tuple(found.target) == (position, position + 3)
    assert found.fits(run.header.pair, ids_of(run), position + 3)
    row = rows_of(run)[position]
    for token in row.tokens:
        assert found.target[position][token.id] == pytest.approx(token.target_logit, abs=1e-4)
        assert found.names[token.id].hex() == token.bytes


def test_the_command_takes_telling_places_by_itself(recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.npz"
    assert main(["rows", str(recorded), "--out", str(out)]) == 0
    assert tuple(rows.read(out).target) == rows.telling(trace.read(recorded))


@pytest.mark.parametrize("position", ["0", "-3", "100000"])
def test_a_place_that_the_run_lacks_is_named_and_nothing_written(
    position: str, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.npz"
    assert main(["rows", str(recorded), "--out", str(out), "--position", position]) == 2
    assert f"got {position}" in capsys.readouterr().err
    assert not out.exists()


def test_a_trace_that_cannot_be_read_is_refused_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("no trace\n", encoding="utf-8")
    assert main(["rows", str(path), "--out", str(tmp_path / "rows.npz")]) == 2
    assert "line 1" in capsys.readouterr().err
    assert main(["rows", str(tmp_path / "absent.jsonl"), "--out", str(tmp_path / "rows.npz")]) == 2
