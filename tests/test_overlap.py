"""The picture of two laws at one place, its facts, and the place under every rule."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.figures import overlap
from specviz.figures.exact import Exact
from specviz.losslessness import Entrant, entrants
from specviz.probability import warp
from specviz.ui import words

LAWS = st.lists(st.floats(0.001, 1.0), min_size=2, max_size=12)
RIGHT = [*words.RULES, "drafter_at_0"]
NAMES = {name: (called, words.OVERLAP["hints"][name]) for name, called in words.ENTRANTS.items()}


def log(law: tuple[float, ...]) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array(law))


def under(p: tuple[float, ...], q: tuple[float, ...], *, story: bool = False, temperature: float = 1.0) -> Exact:
    trials = entrants(log(p), log(q), temperature=temperature, drafter_temperature=temperature)
    names = [f"t{index}" for index in range(len(p))]
    settings = {"temperature": temperature, "drafter_temperature": temperature}
    change = partial(overlap.change, logits=(log(p), log(q)), settings=settings, by_hand=True)
    return overlap.rules(trials, range(len(p)), names, NAMES, change=change, story=story)


def row(layout: Exact, name: str) -> dict[str, str]:
    found = next(cells for cells in layout.table.rows if cells[0] == words.ENTRANTS[name])
    return dict(zip(layout.table.columns, found, strict=True))


@pytest.mark.parametrize("name", overlap.PRESETS)
def test_every_preset_is_a_pair_of_laws(name: str) -> None:
    p, q = overlap.PRESETS[name]
    assert sum(p) == pytest.approx(1)
    assert sum(q) == pytest.approx(1)
    assert overlap.FEWEST <= len(p) == len(q) <= overlap.MOST


@given(LAWS, st.data())
def test_the_picture_adds_up_whatever_has_a_row(weights: list[float], data: st.DataObject) -> None:
    other = data.draw(st.lists(st.floats(0.001, 1.0), min_size=len(weights), max_size=len(weights)))
    p, q = (np.array(law) / sum(law) for law in (weights, other))
    ids = overlap.likeliest(p, q, data.draw(st.integers(1, len(weights))))
    place = overlap.picture(p, q, ids, str, title="")
    bars = [*place.bars, *([place.others] if place.others else [])]
    assert sum(bar.both + bar.only_target for bar in bars) == pytest.approx(1)
    assert sum(bar.both + bar.only_drafter for bar in bars) == pytest.approx(1)
    assert place.together is not None
    assert place.together.both == pytest.approx(np.minimum(p, q).sum())
    assert place.together.only_target == pytest.approx(place.together.only_drafter)
    assert len(place.table.rows) == len(bars) + 1


def test_a_large_vocabulary_keeps_both_first_choices_in_sight() -> None:
    logits = np.random.default_rng(0).normal(size=(2, 5_000))
    p, q = warp(logits, 0.5)
    ids = overlap.likeliest(p, q, overlap.ROWS)
    assert {int(p.argmax()), int(q.argmax())} <= set(ids)
    place = overlap.picture(p, q, ids, str, title="")
    assert place.others is not None
    assert place.others.label == "4,993 others"


@pytest.mark.parametrize(
    ("p", "q", "written"),
    [
        ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5), ("0.70", "0.30", "0.63", "0.29")),
        ((0.5, 0.5, 0.0), (0.5, 0.0, 0.5), ("0.50", "0.50", "0.33", "0.25")),
        ((1.0, 0.0), (1.0, 0.0), ("1", "0", "1", "1")),
        ((1.0, 0.0), (0.0, 1.0), ("0", "1", "0", "0")),
    ],
)
def test_the_facts_are_the_known_numbers(p: tuple[float, ...], q: tuple[float, ...], written: tuple[str, ...]) -> None:
    facts = overlap.facts(np.array(p), np.array(q))
    assert tuple(line.split()[0] for line in facts.numbers) == written


def test_the_extremes_are_told_in_words() -> None:
    equal = np.array([0.1, 0.2, 0.7])
    assert overlap.facts(equal, equal).story[0][0] == "Identical:"
    assert overlap.facts(np.array([1.0, 0.0]), np.array([0.0, 1.0])).story[0][0] == "Nothing in common:"


def test_one_place_under_every_rule_keeps_what_is_known() -> None:
    layout = under(*overlap.PRESETS["classic"])
    kept = {name: row(layout, name)["kept"] for name in ("speculative_sampling", "drafter_at_0", "token_match")}
    assert kept == {"speculative_sampling": "0.90", "drafter_at_0": "0.60", "token_match": "0.47"}
    redealt = row(layout, "resample_from_p")
    assert [redealt[f"t{index}"] for index in range(4)] == ["0.66", "0.22", "0.06", "0.06"]
    assert redealt["distance to p"] == "0.08"


def test_right_and_wrong_are_told_apart_by_glyph_and_word() -> None:
    layout = under(*overlap.PRESETS["classic"], temperature=0.7)
    for frame, name in zip(layout.frames, [*words.ENTRANTS], strict=False):
        assert frame.right != frame.wrong, name
    by_name = dict(zip((one for one, *_ in layout.table.rows), layout.frames, strict=True))
    for name, called in words.ENTRANTS.items():
        frame = by_name[called]
        assert frame.right == (name in RIGHT)
        assert ("exact" in frame.caption) == (name in RIGHT)
        assert any(bar.off for bar in frame.bars) == (name not in RIGHT)


def test_a_lie_that_happens_to_be_true_is_no_right_rule() -> None:
    layout = under(*overlap.PRESETS["default"])  # at temperature 1 the law before temperature is the one after it
    called = [cells[0] for cells in layout.table.rows].index(words.ENTRANTS["q_before_temperature"])
    frame = layout.frames[called]
    assert frame.wrong
    assert not frame.right
    assert "luck" in frame.caption
    assert "set the drafter’s temperature off 1" in frame.caption


@pytest.mark.parametrize("name", overlap.PRESETS)
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_what_is_wrong_by_luck_only_in_sight_says_what_to_change(name: str, temperature: float) -> None:
    layout = under(*overlap.PRESETS[name], temperature=temperature)
    for frame, cells in zip(layout.frames, layout.table.rows, strict=True):
        lucky = frame.wrong and cells[-1] == "0"
        assert ("to see it" in frame.caption) == lucky, frame.title
        assert temperature == 0 or "above 0" not in frame.caption


NARROW = {"temperature": 2.0, "drafter_temperature": 2.0, "top_k": 2, "top_p": 0.05}


@pytest.mark.parametrize(
    ("preset", "settings", "name", "told", "moved"),
    [
        ("default", NARROW, "strike_out", "raise top-p", {"top_p": 1.0}),
        (
            "default",
            {"temperature": 0.0},
            "resample_from_p",
            "set the target’s temperature above 0",
            {"temperature": 1},
        ),
        ("greedy drafter", {}, "strike_out", "let the drafter want two tokens", None),
        ("disjoint", {}, "resample_from_p", "let p and q share a token", None),
    ],
)
def test_what_shows_a_hidden_fault_fits_the_settings(
    preset: str, settings: dict[str, float], name: str, told: str, moved: dict[str, float] | None
) -> None:
    logits, plain = [log(law) for law in overlap.PRESETS[preset]], {"temperature": 1.0, "drafter_temperature": 1.0}

    def trial(**changed: float) -> Entrant:
        every = entrants(*logits, **{**plain, **settings, **changed})  # type: ignore[arg-type]
        return next(one for one in every if one.name == name)

    assert trial().distance < overlap.ROUNDING
    by_hand = overlap.change(trial(), (logits[0], logits[1]), {**plain, **settings}, by_hand=True)
    assert by_hand == told
    of_run = overlap.change(trial(), (logits[0], logits[1]), {**plain, **settings}, by_hand=False)
    assert "bend" not in of_run
    assert "let " not in of_run
    assert moved is None or trial(**moved).distance > overlap.ROUNDING


@pytest.mark.parametrize("shared", [0.825, 0.705, 0.295, 0.5, 1 / 3, 1e-6])
def test_one_number_is_rounded_one_way(shared: float) -> None:
    p, q = np.array([shared, 1 - shared, 0.0]), np.array([shared, 0.0, 1 - shared])
    alpha, tv = (line.split()[0] for line in overlap.facts(p, q).numbers[:2])
    place = overlap.picture(p, q, range(3), str, title="")
    layout = under(tuple(p), tuple(q))
    assert place.together is not None
    assert (
        alpha
        == place.shared
        == row(layout, "speculative_sampling")["kept"]
        == row(layout, "block_verification")["kept"]
    )
    assert place.together.written == (tv, tv)
    if shared > 0.01:
        assert float(alpha) + float(tv) == pytest.approx(1)
        assert f"{round(100 * float(alpha))} times in 100" in "".join(text for text, _ in overlap.facts(p, q).story)


def test_only_what_wants_something_else_has_a_scale_of_its_own() -> None:
    layout = under((0.3, 0.3, 0.4), (0.2, 0.3, 0.5))
    own = [frame.title for frame in layout.frames if frame.highest is not None]
    assert own == [words.ENTRANTS["greedy"]]
    assert layout.highest < 1


@pytest.mark.parametrize("story", [False, True])
def test_a_story_has_no_distances(story: bool) -> None:
    layout = under(*overlap.PRESETS["classic"], story=story)
    assert ("0.08 off" in " ".join(frame.caption for frame in layout.frames)) != story


@given(LAWS)
def test_a_bar_never_reaches_past_the_scale(weights: list[float]) -> None:
    law = [weight / sum(weights) for weight in weights]
    end = overlap.scale(law, law)
    assert max(law) <= end
    assert end == 1 or max(law) < end
