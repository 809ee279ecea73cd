"""Gamma: what a number of drafts should bring, where no number pays, and how an engine is told.

Every number here is modelled by :mod:`specviz.theory`, but for alpha and c that came out, which are marked as what
they are. Measured sweeps are drawn in :mod:`specviz.figures.sweep`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import plotly.graph_objects as go

from specviz import theory
from specviz.figures.charts import Panel, colour, escaped, figure
from specviz.figures.numbers import ORDINALS, ordinal, probability, significant
from specviz.figures.roofline import times
from specviz.figures.table import Table

MOST = 40
"""The largest gamma that is looked at: alpha .95 and c .01 have their best one here."""
GAMMAS = range(MOST + 1)
ALPHAS = tuple(step / 50 for step in range(51))
CHEAPEST, DEAREST = 0.005, 1.0
RATIOS = tuple(CHEAPEST * (DEAREST / CHEAPEST) ** (step / 40) for step in range(41))
LABELLED_ALPHAS = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.96)
LABELLED_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
SYMBOLS = (("diamond-open", "diamond"), ("square-open", "square"))
"""Of what came out, and what they are called: open, for a number may stand in them."""
FACTORS = (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Scene:
    """What the visitor set: alpha in [0, 1], c and c_ops at least 0, gamma in 0..40."""

    alpha: float
    c: float
    gamma: int
    c_ops: float = 0.1

    @property
    def speed(self) -> float:
        """Expected speed over the target alone."""
        return theory.speedup(self.alpha, self.gamma, self.c)

    @property
    def best(self) -> int:
        """The gamma with the largest speed."""
        return theory.optimal_gamma(self.alpha, self.c, MOST)

    @property
    def endless(self) -> bool:
        """Whether every further draft pays, so that there is no best gamma."""
        return (self.c == 0 and self.alpha > 0) or (self.alpha == 1 and self.c < 1)


@dataclass(frozen=True, slots=True)
class Found:
    """Alpha and c as they came out, and where they are from: a mark of the map."""

    name: str
    alpha: float
    c: float
    source: str
    badge: str


def ratio(c: float) -> str:
    """c as people read it: to a thousandth, as the sliders have it, more where it is small."""
    if 0 < c < 0.01:
        return significant(c, 2)
    return f"{c:.2f}" if f"{c:.3f}".endswith("0") else f"{c:.3f}"


def cost(c: float) -> str:
    """What a drafter's read costs, in words: "a tenth of the target’s"."""
    if c in (0, 1):
        return "as much as the target’s" if c else "nothing"
    parts = round(1 / c) if c > 0.05 else 0
    if 2 <= parts <= len(ORDINALS) and abs(c - 1 / parts) < 0.0005:
        return f"{'half' if parts == 2 else f'a {ordinal(parts)}'} of the target’s"
    return f"{ratio(c)} of the target’s"


# --- a curve by gamma -------------------------------------------------------------------------------------------------


def curves(scene: Scene) -> Panel:
    """Tokens a read, speed and arithmetic, all against the target alone, for gamma 0 to 40."""
    expected = [theory.expected_tokens(scene.alpha, gamma) for gamma in GAMMAS]
    speeds = [theory.speedup(scene.alpha, gamma, scene.c) for gamma in GAMMAS]
    work = [theory.operations_factor(scene.alpha, gamma, scene.c_ops) for gamma in GAMMAS]
    brings, costs = expected[scene.gamma], 1 + scene.gamma * scene.c
    bound = "no end of tokens" if scene.alpha == 1 else f"{1 / (1 - scene.alpha):.2f} tokens"
    return Panel(
        "What a gamma should bring",
        story(scene),
        (
            f"Gamma {scene.gamma}: a round brings {brings:.2f} tokens and costs {costs:.2f} reads of the target "
            f"(1 + {scene.gamma} × {ratio(scene.c)}).",
            "Arithmetic a token: the sums and products that both models do, for every token that enters the text. Here "
            f"{times(work[scene.gamma])} that of the target alone: time is bought with it.",
            f"A draft that ended each time right before its first rejection would bring {bound} a read: more than any "
            "gamma.",
            "Assumed: every draft stays with the same chance, a wider read takes no longer, and nothing else takes "
            "time. The sweep below measures all three.",
        ),
        f"E = 1 + α + … + α^γ = {brings:.4f} tokens a read\n"
        f"speed = E ÷ (1 + γ c) = {brings:.4f} ÷ {costs:.4f} = {scene.speed:.4f}\n"
        f"arithmetic = (γ c_ops + γ + 1) ÷ E = {work[scene.gamma]:.4f}\n"
        "c_ops: the drafter’s arithmetic for a token ÷ the target’s\n"
        f"a common slip, without the closing token: (E − 1) ÷ (1 + γ c) = {(brings - 1) / costs:.4f}\n"
        "Leviathan et al. 2023, arXiv 2211.17192: equation 1, theorems 3.8, 3.11",
        Table(
            f"By gamma, at shared {probability(scene.alpha)} and c {ratio(scene.c)}, modelled",
            ("gamma", "tokens a read", "reads a round costs", "speed", "arithmetic a token"),
            tuple(
                (
                    str(gamma),
                    f"{expected[gamma]:.4f}",
                    f"{1 + gamma * scene.c:.3f}",
                    times(speeds[gamma]),
                    times(work[gamma]),
                )
                for gamma in GAMMAS
            ),
        ),
        _curves_figure(scene, speeds, expected, work),
        f"Speed, tokens a read and arithmetic against gamma from 0 to {MOST}. {story(scene)}",
    )


def _curves_figure(scene: Scene, speeds: list[float], expected: list[float], work: list[float]) -> go.Figure:
    low, high = min(1.0, *speeds), max(*expected, *work)
    drawn = figure(
        x={"title": "gamma γ: drafts a round", "dtick": 4, "range": [-0.5, MOST + 0.5]},
        y={
            "title": "times the target alone",
            "type": "log",
            "tickvals": FACTORS,
            "ticktext": [f"{factor:g}×" for factor in FACTORS],
            "range": [math.log10(low * 0.85), math.log10(high * 1.15)],
        },
        hovermode="x unified",
    )
    lines: tuple[tuple[str, list[float], str, str, int], ...] = (
        ("speed", speeds, "ink", "solid", 3),
        ("tokens a read", expected, "target", "dash", 2),
        ("arithmetic a token", work, "muted", "dot", 2),
    )
    for name, values, ink, dash, width in lines:
        drawn.add_scatter(
            x=list(GAMMAS),
            y=values,
            mode="lines",
            name=name,
            line={"color": colour(ink), "dash": dash, "width": width},
            hovertemplate=f"{name} %{{y:.2f}}×<extra></extra>",
        )
    drawn.add_hline(y=1, line={"color": colour("muted"), "width": 1})
    marks = [("yours", scene.gamma, "circle-open")]
    if not scene.endless:
        marks.insert(0, ("best", scene.best, "diamond"))
    for name, gamma, symbol in marks:
        drawn.add_scatter(
            x=[gamma],
            y=[speeds[gamma]],
            mode="markers",
            marker={"symbol": symbol, "size": 12, "color": colour("ink"), "line": {"width": 2.5}},
            name=f"{name}: gamma {gamma}",
            hovertemplate=f"{name}: gamma {gamma}, {times(speeds[gamma])}<extra></extra>",
        )
    return drawn


def story(scene: Scene) -> str:
    """The best gamma, and what is to be said of the one that is set."""
    at = f"With shared {probability(scene.alpha)} and a drafter’s read that costs {cost(scene.c)}"
    best = scene.best
    if scene.endless:
        first = f"{at}, every further draft pays: there is no best gamma."
    elif not best:
        first = f"{at}, no gamma pays: no draft brings more than it costs, and nothing beats the target alone."
    else:
        first = f"{at}, {_advice(scene.alpha, scene.c)}."
    return first if best == scene.gamma and not scene.endless else f"{first} {verdict(scene)}"


def _advice(alpha: float, c: float) -> str:
    """The best gamma, from 1, and its speed; of one beyond :data:`MOST` only that it is there."""
    best = theory.optimal_gamma(alpha, c, MOST + 1)
    speed = times(theory.speedup(alpha, min(best, MOST), c))
    if best > MOST:
        return f"{MOST} drafts a round or more should be best: {speed} with {MOST}"
    return f"{best} {'draft' if best == 1 else 'drafts'} a round should be best: {speed}"


def verdict(scene: Scene) -> str:
    """What the gamma that is set should do."""
    if not scene.gamma:
        return "Yours, gamma 0: no drafts, plain decoding, one read a token."
    speed = scene.speed
    if speed < 1:
        return f"Yours, gamma {scene.gamma}: {times(speed)}, slower than the target alone; the drafter’s reads eat it."
    return f"Yours, gamma {scene.gamma}: {times(speed)}" + (", as fast as the target alone." if speed == 1 else ".")


def thought(scene: Scene) -> str:
    """What the theory thinks of the gamma that is set, in a sentence that stands alone."""
    if scene.endless:
        best = "every further draft pays"
    elif not scene.best:
        best = "no gamma pays"
    else:
        best = "this is the best gamma" if scene.best == scene.gamma else f"the best is gamma {scene.best}"
    slower = ", slower than the target alone" if scene.speed < 1 else ""
    return f"By the theory, with the sliders’ numbers, gamma {scene.gamma} is {times(scene.speed)}{slower}; {best}."


# --- the best gamma over alpha and c ----------------------------------------------------------------------------------


@cache
def _best() -> tuple[tuple[int, ...], ...]:
    """The best gamma by alpha (rows) and c (columns)."""
    return tuple(tuple(theory.optimal_gamma(alpha, c, MOST) for c in RATIOS) for alpha in ALPHAS)


@cache
def _ground() -> go.Figure:
    """The map without the visitor's marks: it never changes."""
    drawn = figure(
        x={
            "title": "c: a drafter’s read, in target reads",
            "type": "log",
            "tickvals": (0.005, *LABELLED_RATIOS, 1),
            "ticktext": [f"{ratio:g}" for ratio in (0.005, *LABELLED_RATIOS, 1)],
            "range": [math.log10(CHEAPEST), math.log10(DEAREST)],
            "showgrid": False,
        },
        y={"title": "shared (alpha)", "range": [0, 1], "dtick": 0.2, "showgrid": False},
        hovermode="closest",
    )
    drawn.add_heatmap(
        x=RATIOS,
        y=ALPHAS,
        z=[[math.log2(gamma + 1) for gamma in row] for row in _best()],
        text=[[str(gamma) for gamma in row] for row in _best()],
        colorscale=[[0, colour("paper")], [1, colour("muted")]],
        opacity=0.45,
        showscale=False,
        hovertemplate="shared %{y:.2f}, c %{x:.3~g}: best gamma %{text}<extra></extra>",
    )
    places = [(alpha, c) for alpha in LABELLED_ALPHAS for c in LABELLED_RATIOS]
    drawn.add_scatter(
        x=[c for _, c in places],
        y=[alpha for alpha, _ in places],
        mode="text",
        text=[str(theory.optimal_gamma(alpha, c, MOST)) for alpha, c in places],
        textfont={"color": colour("ink"), "size": 12},
        hoverinfo="skip",
        showlegend=False,
    )
    return drawn


def best_map(scene: Scene, found: Sequence[Found]) -> Panel:
    """The best gamma over alpha and c, with what is set and what came out on it."""
    drawn = go.Figure(_ground())
    marks: list[tuple[str, float, float, str, dict[str, Any]]] = [
        ("yours", scene.alpha, scene.c, "circle-open", {"size": 22, "line": {"width": 2.5}})
    ]
    for one, (symbol, _) in zip(found, SYMBOLS, strict=False):
        line = {"width": 2.5, "color": colour("ink")}
        marks.append((f"{one.name} ({one.badge})", one.alpha, one.c, symbol, {"size": 22, "line": line}))
    for name, alpha, c, symbol, marker in marks:
        drawn.add_scatter(
            x=[min(max(c, CHEAPEST), DEAREST)],
            y=[alpha],
            mode="markers",
            name=escaped(name),
            marker={"symbol": symbol, "color": colour("ink")} | marker,
            cliponaxis=False,
            hovertemplate=escaped(f"{name}: shared {probability(alpha)}, c {ratio(c)}") + "<extra></extra>",
        )
    ground, numbers, *marked = drawn.data
    drawn.data = (ground, *marked, numbers)  # the numbers lie above the marks
    told = _here(found[0]) if found else "The numbers are the best gamma. Where they are 0, no draft pays."
    return Panel(
        "Where drafting pays",
        told,
        (
            "The numbers on the map are the best gamma. 0: shared is not above c, so no number of drafts pays.",
            "A good drafter and a cheap one: up and to the left, many drafts pay. A drafter that is large enough to "
            "agree more often also costs more: up and to the right.",
            *(
                f"The {called}: shared {probability(one.alpha)}, c {ratio(one.c)}, of {one.source}."
                for one, (_, called) in zip(found, SYMBOLS, strict=False)
            ),
        ),
        "γ* = argmax (1 + α + … + α^γ) ÷ (1 + γ c)\n"
        "the smaller of equals, up to γ = 40\n"
        "α > c: some γ ≥ 1 pays, at best at least (1 + α) ÷ (1 + c)\n"
        "α ≤ c: γ* = 0 (corollary 3.9)",
        Table(
            "Best gamma and speed by shared (alpha, rows) and c (columns), modelled",
            ("shared", *(f"c {c:g}" for c in LABELLED_RATIOS)),
            tuple((f"{alpha:g}", *(_cell(alpha, c) for c in LABELLED_RATIOS)) for alpha in LABELLED_ALPHAS),
        ),
        drawn,
        "Best gamma over shared and c: many drafts where shared is high and c small, 0 where shared is not above c. "
        + told,
        badge=" · ".join(dict.fromkeys(("modelled", *(one.badge for one in found)))),
    )


def _cell(alpha: float, c: float) -> str:
    best = theory.optimal_gamma(alpha, c, MOST)
    return f"{best}: {times(theory.speedup(alpha, best, c))}"


def _here(one: Found) -> str:
    at = f"The {SYMBOLS[0][1]}, {one.name}: shared {probability(one.alpha)}, a drafter’s read costs {cost(one.c)}"
    if not theory.optimal_gamma(one.alpha, one.c, MOST):
        return f"{at}. No draft should pay there."
    return f"{at}. There {_advice(one.alpha, one.c)}."


# --- in an engine -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Engine:
    """How an engine is told a gamma: what to type, its page of documentation, and what to know."""

    name: str
    flags: str
    page: str
    note: str


def engines(gamma: int) -> tuple[Engine, ...]:
    """The flags for this gamma with a separate drafter; TARGET and DRAFTER stand for the models' names or files."""
    config = json.dumps({"method": "draft_model", "model": "DRAFTER", "num_speculative_tokens": gamma})
    return (
        Engine(
            "vLLM",
            f"vllm serve TARGET \\\n  --speculative-config '{config}'",
            "https://docs.vllm.ai/en/latest/features/speculative_decoding/draft_model/",
            "It drafts the drafter’s first choice unless “draft_sample_method” is “probabilistic”: other drafts, so "
            "another acceptance than shared (alpha).",
        ),
        Engine(
            "SGLang",
            "python3 -m sglang.launch_server \\\n"
            "  --model TARGET \\\n"
            "  --speculative-algorithm STANDALONE \\\n"
            "  --speculative-draft-model-path DRAFTER \\\n"
            f"  --speculative-num-steps {gamma} \\\n"
            "  --speculative-eagle-topk 1 \\\n"
            f"  --speculative-num-draft-tokens {gamma + 1}",
            "https://docs.sglang.io/docs/advanced_features/speculative_decoding",
            "The steps are gamma; the draft tokens are the rows of the read, gamma + 1. Set all three or none.",
        ),
        Engine(
            "llama.cpp",
            "llama-server -m TARGET.gguf -md DRAFTER.gguf \\\n"
            "  --spec-type draft-simple \\\n"
            f"  --spec-draft-n-max {gamma} \\\n"
            "  --spec-draft-n-min 0 --spec-draft-p-min 0",
            "https://github.com/ggml-org/llama.cpp/blob/master/docs/speculative.md",
            f"Builds from before ggml-org/llama.cpp#22397 and #22964 say --draft-max {gamma} and need no --spec-type. "
            "A --spec-draft-p-min above 0 stops early: adaptive gamma.",
        ),
        Engine(
            "transformers",
            "drafter.generation_config.update(\n"
            f"  num_assistant_tokens={gamma},\n"
            '  num_assistant_tokens_schedule="constant",\n'
            "  assistant_confidence_threshold=0.0,\n"
            ")\n"
            "target.generate(**inputs, do_sample=True,\n"
            "  assistant_model=drafter)",
            "https://huggingface.co/docs/transformers/main/en/assisted_decoding",
            "Left alone it drafts up to 20 and stops where the drafter’s confidence is below 0.4.",
        ),
    )
