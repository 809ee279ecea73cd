"""Colours: readable, and told apart by everyone."""

from __future__ import annotations

import math
import tomllib
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from specviz.figures import palette
from specviz.figures.palette import MEANINGS, TINT

THEMES = ("light", "dark")
# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
SIMULATIONS = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def mixed(colour: str, ground: str, share: float) -> str:
    channels = [round(int(colour[i : i + 2], 16) * share + int(ground[i : i + 2], 16) * (1 - share)) for i in (1, 3, 5)]
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2."""
    luminance = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (luminance[1] + 0.05) / (luminance[0] + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b*, D65."""
    matrix = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = np.array(matrix) @ np.clip(rgb, 0, 1) / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def delta_e(one: np.ndarray, other: np.ndarray) -> float:
    """CIEDE2000."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean_c = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(mean_c**7 / (mean_c**7 + 25**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = math.degrees(math.atan2(b1, a1)) % 360, math.degrees(math.atan2(b2, a2)) % 360
    dl, dc, dh = l2 - l1, c2 - c1, h2 - h1
    dh = 0.0 if c1 * c2 == 0 else dh - 360 if dh > 180 else dh + 360 if dh < -180 else dh
    big_dh = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(dh) / 2)
    ml, mc = (l1 + l2) / 2, (c1 + c2) / 2
    mh = h1 + h2 if c1 * c2 == 0 else (h1 + h2) / 2 if abs(h1 - h2) <= 180 else ((h1 + h2 + 360) / 2) % 360
    t = (
        1
        - 0.17 * math.cos(math.radians(mh - 30))
        + 0.24 * math.cos(math.radians(2 * mh))
        + 0.32 * math.cos(math.radians(3 * mh + 6))
        - 0.20 * math.cos(math.radians(4 * mh - 63))
    )
    sl = 1 + 0.015 * (ml - 50) ** 2 / math.sqrt(20 + (ml - 50) ** 2)
    sc, sh = 1 + 0.045 * mc, 1 + 0.015 * mc * t
    turn = math.radians(60 * math.exp(-(((mh - 275) / 25) ** 2)))
    rt = -math.sin(turn) * 2 * math.sqrt(mc**7 / (mc**7 + 25**7))
    return math.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (big_dh / sh) ** 2 + rt * (dc / sc) * (big_dh / sh))


def test_the_colour_difference_is_ciede2000() -> None:
    """Two pairs of Sharma, Wu, Dalal 2005."""
    assert delta_e(np.array([50, 2.6772, -79.7751]), np.array([50, 0, -82.7485])) == pytest.approx(2.0425, abs=1e-4)
    assert delta_e(np.array([50, 2.5, 0]), np.array([73, 25, -18])) == pytest.approx(27.1492, abs=1e-4)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ink", ["INK", "MUTED"])
def test_text_stands_out_from_every_ground(theme: str, ink: str) -> None:
    text = getattr(getattr(palette, ink), theme)
    paper = getattr(palette.PAPER, theme)
    grounds = [paper, getattr(palette.RAISED, theme)]
    if ink == "INK":
        grounds += [mixed(getattr(meaning.colour, theme), paper, TINT) for meaning in MEANINGS.values()]
    assert min(contrast(text, ground) for ground in grounds) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_a_rejected_token_is_readable_in_its_own_colour(theme: str) -> None:
    assert contrast(getattr(MEANINGS["rejected"].colour, theme), getattr(palette.PAPER, theme)) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_the_label_inside_the_shared_bar_is_readable(theme: str) -> None:
    assert contrast(getattr(palette.ON_COLOUR, theme), getattr(MEANINGS["both"].colour, theme)) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eyes", SIMULATIONS)
def test_two_meanings_differ_by_pattern_or_by_colour_for_everyone(theme: str, eyes: str) -> None:
    close = []
    for (name, one), (other_name, other) in combinations(MEANINGS.items(), 2):
        if one.pattern != other.pattern:
            continue
        seen = [lab(SIMULATIONS[eyes] @ linear(getattr(meaning.colour, theme))) for meaning in (one, other)]
        if delta_e(*seen) < 10:
            close.append((name, other_name))
    assert close == []


def test_hatching_means_never_judged_and_nothing_else() -> None:
    assert [name for name, meaning in MEANINGS.items() if meaning.pattern == "hatch"] == ["unjudged"]


def test_every_fate_has_a_glyph_and_a_word_of_its_own() -> None:
    assert len({fate.glyph for fate in palette.FATES.values()}) == len(palette.FATES)
    assert len({fate.word for fate in palette.FATES.values()}) == len(palette.FATES)


@pytest.mark.parametrize("theme", THEMES)
def test_the_page_wears_the_palettes_ground_and_ink(theme: str) -> None:
    config = tomllib.loads((Path(__file__).parent.parent / ".streamlit" / "config.toml").read_text("utf-8"))
    page = config["theme"][theme]
    assert page["backgroundColor"] == getattr(palette.PAPER, theme)
    assert page["secondaryBackgroundColor"] == getattr(palette.RAISED, theme)
    assert page["textColor"] == page["primaryColor"] == getattr(palette.INK, theme)
    assert page["borderColor"] == getattr(palette.HAIRLINE, theme)
