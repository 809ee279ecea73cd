"""``python -m specviz bench``: how fast the app is on this machine, beside what it is measured against.

    bench start         launch until strip, coin and sentence are visible, beside a one-line Streamlit page
    bench ui            click on Step until the new moment is painted, in the middle of a recorded run of 256 tokens
    bench round         a live round, and what it is made of: reads of the target, a step of the drafter
    bench laboratory    many draws of one place under every rule, and the verdict on them

Every number is a median. Close other programs first: each of these fills the processor.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from specviz import trace as traces
from specviz.cli import browser
from specviz.trace import Trace

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from specviz.models.language_model import LanguageModel

ONE_LINE_PAGE = 'import streamlit as st\n\nst.write("one line")\n'
FIRST = (".strip .chip", ".strip .sentence:not(:empty)", ".coin .line:not(.heads)")
"""What a visitor must see before anything else."""
REST = (".place .rows > *", ".tally h2")
"""The panels below."""
SETTLED = "[data-testid=stApp][data-test-script-state=notRunning]"
CLICK_UNTIL_PAINTED = """([button, label]) => new Promise((resolve, reject) => {
    const before = label.textContent;
    const start = performance.now();
    const look = () => {
        const passed = performance.now() - start;
        if (label.textContent !== before) requestAnimationFrame(() => resolve(performance.now() - start));
        else if (passed < 10000) requestAnimationFrame(look);
        else reject(new Error(`nothing changed behind ${before}`));
    };
    button.click();
    requestAnimationFrame(look);
})"""
"""Milliseconds from the click to the frame after the one in which the moment's label is new."""
DRAG = """async (range) => {
    const strip = range.getRootNode().querySelector(".strip"), last = Number(range.max), times = [];
    for (let step = 0; step <= 80; step++) {
        range.value = Math.round(last * (0.5 + step / 160));
        const start = performance.now();
        range.oninput();
        strip.getBoundingClientRect();
        times.push(performance.now() - start);
        await new Promise(requestAnimationFrame);
    }
    range.onchange();
    return times.slice(1);
}"""
"""Milliseconds of script and layout for each moment that the scrubber is dragged over, in the run's second half."""

VOCABULARIES = (1_000, 49_152)
"""Tokens of the places that are dealt: races over a whole vocabulary are run less often."""

WIDTHS = (1, 5, 9)
"""Rows of the target's reads: a plain token, gamma 4, gamma 8."""
RECORDED = browser.CHECKOUT / "assets" / "traces" / "sampling.jsonl"
TOKENS = 256
"""Length of the run that is browsed."""
BROWSED_APP = """
import runpy
from pathlib import Path

from specviz.ui import recordings

recordings.FOLDER = Path({folder!r})
runpy.run_path({app!r})
"""
PROMPT = "Tell me a short story about a dragon who was afraid of fire."

Table = list[tuple[str, ...]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the benchmarks."""
    parser.description = "Measure this machine: medians, beside what they are compared with."
    kinds = parser.add_subparsers(dest="benchmark", required=True, metavar="start|ui|round|laboratory")

    start = kinds.add_parser("start", help="launch until the page shows strip, coin and sentence")
    start.add_argument("--launches", type=_count, default=3, metavar="N", help="of each page (default 3)")
    start.set_defaults(measure=_start)

    ui = kinds.add_parser("ui", help="click on Step until the new sentence is painted")
    ui.add_argument("--clicks", type=_count, default=20, metavar="N", help="how many (default 20)")
    ui.set_defaults(measure=_ui)

    round_ = kinds.add_parser("round", help="a live round, reads of the target, a step of the drafter")
    round_.add_argument("--pair", default="embedded", metavar="ID", help="a pair of `specviz pairs` (default embedded)")
    round_.add_argument("--gamma", type=int, default=4, metavar="N", help="drafts a round (default 4)")
    round_.add_argument("--rounds", type=_count, default=20, metavar="N", help="rounds, and reads (default 20)")
    round_.set_defaults(measure=_round)

    laboratory = kinds.add_parser("laboratory", help="many draws of one place under every rule")
    laboratory.add_argument("--deals", type=_count, default=3, metavar="N", help="of each rule (default 3)")
    laboratory.set_defaults(measure=_laboratory)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark that ``args`` names and print its table.

    Raises:
        BrowserError: there is no browser to drive.
        LoadError: the pair cannot be loaded.
        ValueError: an unknown pair, or a gamma out of range.
    """
    table: Table = args.measure(args)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, *cells in table:
        right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        print("  ".join((name.ljust(widths[0]), *right)).rstrip())
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text!r}")
    return int(text)


# --- in the browser ---------------------------------------------------------------------------------------------------


def _start(args: argparse.Namespace) -> Table:
    plain: list[float] = []
    first: list[float] = []
    rest: list[float] = []
    with _workplace() as (chromium, folder):
        one_line = folder / "one_line.py"
        one_line.write_text(ONE_LINE_PAGE)
        for _ in range(args.launches):  # alternating, so that a slow minute of the machine hits both
            plain += _launch(chromium, folder, one_line, ["text=one line"])
            *_, last_of_first, _, last_of_rest = _launch(chromium, folder, browser.APP, [*FIRST, *REST])
            first.append(last_of_first)
            rest.append(last_of_rest)
    page, ours, whole = median(plain), median(first), median(rest)
    return [
        (f"from launch until visible; medians of {args.launches}", "", "", "wanted"),
        ("a one-line Streamlit page", _s(page), "1.00 x", ""),
        ("specviz: strip, coin and sentence", _s(ours), f"{ours / page:.2f} x", "<= 1.5 x"),
        ("the panels below, after that", _s(whole - ours), "", "<= 3 s"),
    ]


def _launch(chromium: Browser, folder: Path, script: Path, selectors: Sequence[str]) -> list[float]:
    """Seconds from starting a server to the moments when a visitor with an empty cache sees each of ``selectors``."""
    context = chromium.new_context()
    page = context.new_page()
    moments = []
    started = time.perf_counter()
    with browser.serve(folder / "log.txt", script) as url:
        page.goto(url, wait_until="commit")
        for selector in selectors:
            page.locator(selector).first.wait_for()
            moments.append(time.perf_counter() - started)
    context.close()
    return moments


def _ui(args: argparse.Namespace) -> Table:
    painted: list[float] = []
    rested: list[float] = []
    with _workplace() as (chromium, folder):
        traces.save(_long_run(TOKENS), folder / RECORDED.name)
        script = folder / "browsed.py"
        script.write_text(BROWSED_APP.format(folder=str(folder), app=str(browser.APP)))
        # Loading the models beside it would be measured too.
        with browser.serve(folder / "log.txt", script, {"SPECVIZ_PRELOAD": "0"}) as url:
            page = chromium.new_page()
            page.goto(url)
            page.locator(FIRST[0]).first.wait_for()
            moments = page.get_by_role("slider", name="Moment of the run")
            page.wait_for_function("(input) => input.max > 0", arg=moments.element_handle())
            moments.fill(str(int(moments.get_attribute("max") or 0) // 2))
            for _ in range(args.clicks):
                page.locator(SETTLED).wait_for()
                button = page.locator(".st-key-step button").element_handle()
                label = page.locator(".strip output").element_handle()
                started = time.perf_counter()
                painted.append(float(page.evaluate(CLICK_UNTIL_PAINTED, [button, label])))
                page.locator(SETTLED).wait_for()
                rested.append(1e3 * (time.perf_counter() - started))
            page.get_by_role("button", name="show all drafts").click()
            dragged = page.get_by_role("slider", name="Moment of the run").evaluate(DRAG)
    return [
        (f"click on Step in a run of {TOKENS} tokens; {args.clicks} clicks", "", "wanted"),
        ("until painted, median", f"{median(painted):.0f} ms", "<= 200 ms"),
        ("until painted, slowest", f"{max(painted):.0f} ms", ""),
        ("until the page is at rest, median", f"{median(rested):.0f} ms", ""),
        ("a moment of the scrubber, all drafts shown, median", f"{median(dragged):.1f} ms", "<= 16 ms"),
    ]


def _long_run(tokens: int) -> Trace:
    """The recording that opens the page, its rounds told again and again until the text has ``tokens`` tokens."""
    recorded = traces.read(RECORDED)
    longer = recorded.cut(0)
    for round_ in cycle(recorded.rounds):
        if len(longer.text_ids) >= tokens:
            break
        position = len(longer.header.prompt_ids) + len(longer.text_ids)
        longer = longer.with_round(replace(round_, index=len(longer.rounds), position=position, finish=None))
    return longer


@contextmanager
def _workplace() -> Iterator[tuple[Browser, Path]]:
    """A browser, and a folder that goes away with it."""
    with browser.chromium() as chromium, tempfile.TemporaryDirectory() as folder:
        yield chromium, Path(folder)


# --- models -----------------------------------------------------------------------------------------------------------


def _round(args: argparse.Namespace) -> Table:
    started = time.perf_counter()
    from specviz.decoding.decoder import Decoder
    from specviz.decoding.settings import Settings
    from specviz.models import catalogue, loading

    imported = time.perf_counter()
    settings = Settings(gamma=args.gamma)
    spec = catalogue.find(args.pair)
    if not spec.has_drafter_model:
        raise ValueError(f"--pair must have a drafter with weights of its own, got {spec.id} with {spec.drafter!r}")
    pair = loading.load_pair(spec)
    loaded = time.perf_counter()

    budget = (args.rounds + 1) * (args.gamma + 1)
    decoder = Decoder.start(pair, PROMPT, settings, budget, stop_ids=())
    decoder.step()  # reads the prompt, and is the first to touch every weight
    steps, rounds = [], []
    for _ in range(args.rounds):
        before = time.perf_counter()
        round_ = decoder.step()
        steps.append(time.perf_counter() - before)
        rounds.append(round_.seconds or 0.0)

    ids = pair.tokenizer.chat(PROMPT)
    reads = [_read(pair.target(), ids, width, args.rounds) for width in WIDTHS]
    draft = _read(pair.drafter(), ids, 1, args.rounds)
    one = reads[0]
    load, live = ("<= 5 s", "<= 250 ms") if spec.id == catalogue.EMBEDDED and args.gamma == 4 else ("", "")
    return [
        (f"{spec.name}, {pair.device}, {pair.dtype}; medians of {args.rounds}", "", "reads of 1", "wanted"),
        ("import torch and transformers", _s(imported - started), "", ""),
        ("load the pair", _s(loaded - imported), "", load),
        (f"a live round at gamma {args.gamma}", _ms(median(steps)), f"{median(steps) / one:.2f}", live),
        ("  without its record", _ms(median(rounds)), f"{median(rounds) / one:.2f}", ""),
        *((f"a read of the target of {w}", _ms(t), f"{t / one:.2f}", "") for w, t in zip(WIDTHS, reads, strict=True)),
        ("a step of the drafter", _ms(draft), f"{draft / one:.2f}", ""),
    ]


def _read(model: LanguageModel, ids: Sequence[int], width: int, count: int) -> float:
    """Median seconds of a read of ``width`` tokens behind ``ids``; the first read, which warms up, is left out."""
    model.extend(ids)
    seconds = []
    for _ in range(count + 1):
        seconds.append(model.extend([ids[-1]] * width, rows=width).seconds)
        model.rollback(width)
    return median(seconds[1:])


# --- the laboratory ---------------------------------------------------------------------------------------------------


def _laboratory(args: argparse.Namespace) -> Table:
    from specviz.losslessness import compare, deal, whole_count
    from specviz.noise import gumbel
    from specviz.probability import warp
    from specviz.rules import RULES, WRONG_RULES

    table: Table = [(f"draws of one place; medians of {args.deals}", "tokens", "draws", "", "wanted")]
    for rule in (RULES | WRONG_RULES).values():
        for vocab in VOCABULARIES if rule.races else VOCABULARIES[-1:]:
            p, q = (warp(2 * gumbel(seed, 0, vocab), 1.0) for seed in (1, 2))
            count = whole_count(rule, vocab)
            seconds = []
            for seed in range(args.deals):
                started = time.perf_counter()
                seen = deal(rule, p, q, count, seed)
                seconds.append(time.perf_counter() - started)
            wanted = "<= 1 s" if count == whole_count(rule, 1) else ""
            table.append((rule.name, f"{vocab:,}", f"{count:,}", _s(median(seconds)), wanted))
    started = time.perf_counter()
    compare(seen.emitted, p)
    table.append(("the verdict on them", f"{vocab:,}", f"{count:,}", _s(time.perf_counter() - started), ""))
    return table


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms"
