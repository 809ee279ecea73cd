"""The lines that ran: a rule's source, with the numbers of one place beside each line.

The source is read from the modules that judged and the numbers from their own variables while they did; nothing is a
copy that could grow old. Only this thread is watched, and only for the one call.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from specviz import probability, rules
from specviz.figures.numbers import chances, significant
from specviz.figures.sentences import Spans, fill
from specviz.figures.table import Table
from specviz.noise import RoundNoise
from specviz.probability import Array
from specviz.rules import Closing, Rule, Verdict

WATCHED = (rules, probability)
"""The modules whose lines are shown."""
WRITTEN = 12
"""Numbers of an array that are written out; of a longer one only the largest."""
NUMERIC = "iufb"
LARGE, MANY, FEW = 1_000, 400, 40
"""How many rounds are tried for one that ends as wanted: many, but a few from a vocabulary so large on."""
TOKENS = (
    "draft",
    "target_id",
    "draft_ids",
    "target_ids",
    "draft_id",
    "ids",
    "every_id",
    "inverse_cdf",
    "_argmax",
    "id_of",
    "corrected",
)
"""Variables that hold token ids, and functions that return them."""

TITLE = "The lines that ran"
STORY = {
    "coin.kept": "{draft} is drafted and has {odds} to stay. The coin falls at {coin}, inside: [it stays.]",
    "coin.rejected": "{draft} is drafted and has {odds} to stay. The coin falls at {coin}, outside: [it goes,] and "
    "{closing} is written instead.",
    "own.kept": "{draft} is drafted. The target’s own token is {target}: [the same, so it stays.]",
    "own.rejected": "{draft} is drafted. The target’s own token is {target}: [another, so the draft goes,] and "
    "{closing} is written.",
    "block": "{drafts} are drafted, each with the chances of this place. Together the coins keep [{kept} of {gamma}]; "
    "then {closing} is written.",
}
COLUMNS = ("function", "line", "ran", "source", "numbers")
RAN = {True: "ran", False: "did not run"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the source; ``said`` are the numbers that it made, empty where it made none."""

    number: int
    text: str
    ran: bool
    said: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that ran: the rule's ``own``, or one that the rule calls."""

    name: str
    where: str
    own: bool
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """The panel: what happened in a sentence, and the functions in the order in which they were first called."""

    title: str
    story: Spans
    kept: bool
    functions: tuple[Function, ...]
    table: Table


def of(
    rule: Rule, p: Array, q: Array, name_of: Callable[[int], str], *, seed: int, drawn: Array | None = None
) -> Lines:
    """Draft, judge and close once at a place, and show the lines that did it.

    Block verification judges two drafts, both with the laws of this place: of one alone it makes a plain coin.

    Args:
        rule: any rule, right or wrong.
        p: the target's law, shape (vocab,), float64.
        q: the law that the drafter reports, shape (vocab,), float64.
        name_of: a token's text by its id, made visible.
        seed: of the numbers drawn.
        drawn: the law that the draft is really drawn from; q without it.
    """
    watch = _Watch(name_of)
    draft_ids, verdict = watch(lambda: _round(rule, p, q, q if drawn is None else drawn, seed))
    functions = tuple(watch.functions())
    rows = [
        (one.name, str(line.number), RAN[line.ran], line.text, line.said)
        for one in functions
        for line in one.lines
        if line.text.strip()
    ]
    return Lines(
        title=TITLE,
        story=_story(draft_ids, verdict, name_of),
        kept=int(verdict.kept) == len(draft_ids),
        functions=functions,
        table=Table(TITLE, COLUMNS, tuple(rows)),
    )


def seed_where(rule: Rule, p: Array, q: Array, kept: bool, *, first: int, drawn: Array | None = None) -> int | None:
    """The first seed from ``first`` on whose drafts are all ``kept`` (or not all); None where none is soon found."""
    laws = rule, p, q, q if drawn is None else drawn
    tries = MANY if len(p) < LARGE else FEW
    return next((seed for seed in range(first, first + tries) if _kept_all(*_round(*laws, seed)) == kept), None)


def _kept_all(draft_ids: Array, verdict: Verdict) -> bool:
    return int(verdict.kept) == len(draft_ids)


def _round(rule: Rule, p: Array, q: Array, drawn: Array, seed: int) -> tuple[Array, Verdict]:
    """One round as the decoder runs it: the drafts, (gamma,), and the verdict."""
    gamma = 2 if rule.by_round else 1
    noise = RoundNoise(seed, 0, rule.by_round)
    draft_ids = np.stack([np.asarray(rule.draft(drawn, noise, place)) for place in range(gamma)])
    return draft_ids, rule.verify(np.stack([p] * (gamma + 1)), np.stack([q] * gamma), draft_ids, noise)


def _story(draft_ids: Array, verdict: Verdict, name_of: Callable[[int], str]) -> Spans:
    judged, names = verdict.judgements, [name_of(int(draft)) for draft in draft_ids]
    said: dict[str, Any] = {"draft": names[0], "closing": name_of(int(verdict.closing.id)), "kept": int(verdict.kept)}
    if len(names) > 1:
        return fill(STORY["block"], **said | {"drafts": " ".join(names), "gamma": len(names)})
    fate = "kept" if verdict.kept else "rejected"
    if judged.coin is None:
        assert judged.target_id is not None
        return fill(STORY[f"own.{fate}"], **said | {"target": name_of(int(judged.target_id[0]))})
    odds = chances(float(judged.accept_prob[0]))
    return fill(STORY[f"coin.{fate}"], **said | {"odds": odds, "coin": significant(float(judged.coin[0]), 2)})


# --- watching ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Watch:
    """Calls something and collects which lines of the watched modules ran, and what their variables held then."""

    name_of: Callable[[int], str]
    ran: dict[str, set[int]] = field(default_factory=dict)
    said: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    order: list[tuple[str, int]] = field(default_factory=list)

    def __call__(self, call: Callable[[], Any]) -> Any:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            return call()
        finally:
            sys.settrace(before)

    def functions(self) -> Iterator[Function]:
        """Every function that ran, the first called first."""
        for path, first in self.order:
            source = _sources()[path]
            whole = source.functions[first]
            ran = self.ran[path]
            yield Function(
                whole.name,
                f"{'/'.join(Path(path).parts[-2:])}, line {whole.first}",
                whole.method,
                tuple(
                    Line(
                        number,
                        source.lines[number - 1][whole.indent :],
                        source.statements.get(number, _Statement(number)).first in ran,
                        "; ".join(self.said.get((path, number), ())),
                    )
                    for number in range(whole.first, whole.last + 1)
                    if number not in source.left_out
                ),
            )

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        path = frame.f_code.co_filename
        if path not in _sources():
            return None
        source, first = _sources()[path], frame.f_code.co_firstlineno
        ran = self.ran.setdefault(path, set())
        if frame.f_code.co_name.startswith("<"):  # a lambda or a comprehension: a part of its line
            return lambda *_: None
        function = source.function_at(first)
        if (path, function) not in self.order:
            self.order.append((path, function))
        ran.add(first)
        arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        self._say(path, first, frame, arguments)
        line = 0

        def step(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal line
            if line:
                self._say(path, line, frame, source.statements[line].made)
            if event == "line":
                line = source.statements.get(frame.f_lineno, _Statement(frame.f_lineno)).first
                ran.add(line)
            elif event == "return" and line and source.statements[line].returns:
                self._tell(path, line, self._written(frame.f_code.co_name, arg), "→ ")
            return step

        return step

    def _say(self, path: str, line: int, frame: FrameType, made: Sequence[str]) -> None:
        for name in made:
            if name in frame.f_locals:
                self._tell(path, line, self._written(name, frame.f_locals[name]), f"{name} = ")

    def _tell(self, path: str, line: int, written: str, before: str) -> None:
        """A line that runs again says only what is new."""
        told = self.said.setdefault((path, line), [])
        if written and before + written not in told:
            told.append(before + written)

    def _written(self, name: str, value: Any) -> str:
        """A variable in a few characters; empty where it is none that a reader would look for."""
        if isinstance(value, Verdict):
            return f"kept {int(value.kept)}, then {self._token(value.closing.id)}"
        if isinstance(value, Closing):
            return self._token(value.id)
        if not isinstance(value, np.ndarray | np.generic | bool | int | float):
            return ""
        array = np.asarray(value)
        if array.dtype.kind not in NUMERIC:
            return ""
        if array.ndim > 1 and len(array) > 1 and (array == array[0]).all():
            return f"{len(array)} × {self._written(name, array[0])}"
        flat = array.ravel()
        write = self._token if name in TOKENS else _number
        if flat.size == 1:
            return write(flat[0])
        if flat.size <= WRITTEN:
            return f"[{', '.join(write(one) for one in flat)}]"
        largest = int(np.argmax(flat)) % array.shape[-1]
        return f"{flat.size:,} numbers, the largest {_number(flat.max())} at {self._token(largest)}"

    def _token(self, token_id: Any) -> str:
        return f"“{self.name_of(int(token_id))}”"


def _number(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if not np.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "no number"
    written = f"{int(value)}" if value == int(value) else significant(float(value)).rstrip("0").rstrip(".")
    return written.replace("-", "−")


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement, without the block under it: its first line, the names that it gives a value, whether it returns."""

    first: int
    made: tuple[str, ...] = ()
    returns: bool = False


@dataclass(frozen=True, slots=True)
class _Whole:
    """A function of a module, or a method of one of its classes."""

    name: str
    first: int
    last: int
    indent: int
    method: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """A module's source: its lines, its functions by their first line, its statements by each of their
    lines, and what is left out: docstrings after their first line."""

    lines: tuple[str, ...]
    functions: dict[int, _Whole]
    statements: dict[int, _Statement]
    left_out: frozenset[int]

    def function_at(self, line: int) -> int:
        """The first line of the function that a line is part of."""
        return next(first for first, whole in self.functions.items() if first <= line <= whole.last)


@lru_cache(maxsize=1)
def _sources() -> dict[str, _Source]:
    """The watched modules by the path that their code names."""
    return {str(module.__file__): _read(module) for module in WATCHED}


def _read(module: ModuleType) -> _Source:
    text = inspect.getsource(module)
    tree = ast.parse(text)
    functions: dict[int, _Whole] = {}
    for node in tree.body:
        for one in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(one, ast.FunctionDef):
                name = f"{node.name}.{one.name}" if isinstance(node, ast.ClassDef) else one.name
                first = min((decorator.lineno for decorator in one.decorator_list), default=one.lineno)
                functions[first] = _Whole(name, first, one.end_lineno or first, one.col_offset, one is not node)
    statements: dict[int, _Statement] = {}
    left_out: set[int] = set()
    for statement in (node for node in ast.walk(tree) if isinstance(node, ast.stmt)):
        body = getattr(statement, "body", None)
        last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
        said = _Statement(statement.lineno, tuple(_made(statement)), isinstance(statement, ast.Return))
        # A function's first line is its own, also where its body begins on it.
        statements |= dict.fromkeys(range(statement.lineno, max(last, statement.lineno) + 1), said)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            left_out.update(range(statement.lineno + 1, last + 1))
    return _Source(tuple(text.splitlines()), functions, statements, frozenset(left_out))


def _made(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives a value, or a part of one."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign | ast.For):
        targets = [statement.target]
    for target in targets:
        whole = target.value if isinstance(target, ast.Subscript) else target
        yield from (node.id for node in ast.walk(whole) if isinstance(node, ast.Name))
