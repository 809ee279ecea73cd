"""Rules that hold for the whole source and that no linter of ours knows."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [path for path in (ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))) if path.exists()]
PRODUCT = [*PAGES, *sorted((ROOT / "specviz").rglob("*.py"))]
BROWSER = sorted(path for path in (ROOT / "specviz").rglob("*") if path.suffix in (".js", ".css", ".html"))
TEXTS = [
    *PRODUCT,
    *BROWSER,
    *(path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__)),
    *(ROOT / name for name in ("README.md", "pyproject.toml", "requirements.txt", "requirements-dev.txt", ".ci/run")),
]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(tree: ast.AST) -> Iterator[str]:
    """Every imported module, in functions too; `from a import b` counts as a.b, b may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# --- pages ------------------------------------------------------------------------------------------------------------

PAGE_MAY_IMPORT = ("streamlit", "specviz.ui", "specviz.figures", "specviz.trace", "specviz.theory")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_imports_words_widgets_and_figures_only(page: Path) -> None:
    foreign = [
        module
        for module in imports(ast.parse(page.read_text("utf-8")))
        if module.split(".")[0] not in sys.stdlib_module_names
        and not any(module == allowed or module.startswith(allowed + ".") for allowed in PAGE_MAY_IMPORT)
    ]
    assert foreign == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_sets_itself_up_first(page: Path) -> None:
    """Each page stands alone: it may be the first one that a visitor opens."""
    body = ast.parse(page.read_text("utf-8")).body
    first = next(node for node in body[1:] if not isinstance(node, ast.Import | ast.ImportFrom))
    assert ast.unparse(first).startswith("frame.page_setup(")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_is_named_after_a_package(page: Path) -> None:
    """The script's folder is on sys.path: a page `attrs.py` would take the place of the package."""
    stem = page.stem
    assert stem not in sys.stdlib_module_names
    assert stem not in packages_distributions()


# --- floors -----------------------------------------------------------------------------------------------------------


def test_the_import_contracts_name_every_module_of_the_lower_floors() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    streamlit, heavy = (
        next(c for c in contracts if word in c.get("forbidden_modules", ())) for word in ("streamlit", "torch")
    )
    modules = {
        f"specviz.{path.stem}"
        for path in (ROOT / "specviz").iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and not path.stem.startswith("__")
    }
    floor_5 = {"specviz.ui", "specviz.cli"}
    with_models = {"specviz.models", "specviz.decoding", "specviz.training", "specviz.engines"}
    assert set(streamlit["source_modules"]) == modules - floor_5
    assert set(heavy["source_modules"]) == modules - with_models - {"specviz.cli"}


def test_every_imported_package_is_required() -> None:
    required = {
        re.split(r"[<>=!~\[ ]", line)[0].lower()
        for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    }
    distributions = packages_distributions()
    used = {
        module.split(".")[0]: name(path)
        for path in PRODUCT
        for module in imports(ast.parse(path.read_text("utf-8")))
        if module.split(".")[0] not in {*sys.stdlib_module_names, "specviz"}
    }
    # The benchmarks drive a browser with it and say so where it is missing.
    used.pop("playwright", None)
    unnamed = {
        package: path
        for package, path in used.items()
        if not required & {distribution.lower() for distribution in distributions.get(package, [])}
    }
    assert unnamed == {}


# --- safety -----------------------------------------------------------------------------------------------------------


MARKUP = (
    "unsafe_allow_html",
    "unsafe_allow_javascript",
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
)


@pytest.mark.parametrize("word", MARKUP)
def test_nothing_lets_a_models_text_become_markup(word: str) -> None:
    assert [name(path) for path in (*PRODUCT, *BROWSER) if word in path.read_text("utf-8")] == []


def test_nothing_is_fetched_from_another_host() -> None:
    """Fonts, scripts and pictures come from the machine itself."""
    assert [name(path) for path in BROWSER if re.search(r"(?:https?:)?//[\w-]+\.\w", path.read_text("utf-8"))] == []


def test_no_model_brings_its_own_code() -> None:
    trusting = [
        f"{name(path)}:{node.value.lineno}"
        for path in PRODUCT
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.keyword)
        and node.arg == "trust_remote_code"
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]
    assert trusting == []


# --- randomness -------------------------------------------------------------------------------------------------------

TORCH_DRAWS = {"rand", "randn", "randint", "randperm", "multinomial", "bernoulli", "normal", "rand_like", "randn_like"}
TENSOR_DRAWS = {"uniform_", "normal_", "random_", "exponential_", "bernoulli_", "geometric_", "cauchy_", "multinomial"}


def unseeded(source: str) -> list[str]:
    """Calls in Python, and in JavaScript inside strings, that draw from a generator shared by the whole process."""
    found = ["Math.random"] if "Math.random" in source else []
    tree = ast.parse(source)
    found += [module for module in imports(tree) if module.split(".")[0] in ("random", "secrets")]
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        called = ast.unparse(node.func)
        owner, _, method = called.rpartition(".")
        seeded = any(keyword.arg == "generator" for keyword in node.keywords)
        if (
            (method in ("manual_seed", "manual_seed_all", "seed") and owner in ("torch", "torch.cuda", "np.random"))
            or (method == "default_rng" and not node.args and not node.keywords)
            or (owner == "torch" and method in TORCH_DRAWS and not seeded)
            or (method in TENSOR_DRAWS and not seeded and owner != "generator")  # NumPy's, made with a seed: see above
        ):
            found.append(called)
    return found


@pytest.mark.parametrize("path", PRODUCT, ids=name)
def test_randomness_comes_in_from_outside(path: Path) -> None:
    assert unseeded(path.read_text("utf-8")) == []


def test_the_browser_draws_no_numbers() -> None:
    assert [name(path) for path in BROWSER if "Math.random" in path.read_text("utf-8")] == []


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "from random import choice",
        "np.random.default_rng()",
        "np.random.seed(0)",
        "torch.manual_seed(0)",
        "torch.multinomial(p, 1)",
        "x.uniform_()",
        "js = 'let coin = Math.random();'",
    ],
)
def test_the_search_for_shared_randomness_finds(source: str) -> None:
    assert unseeded(source)


@pytest.mark.parametrize(
    "source",
    [
        "np.random.default_rng(seed)",
        "torch.Generator(device).manual_seed(seed)",
        "torch.randperm(n, generator=generator)",
        "noise.uniform(seed, DRAFT, position)",
    ],
)
def test_the_search_for_shared_randomness_passes(source: str) -> None:
    assert not unseeded(source)


# --- texts ------------------------------------------------------------------------------------------------------------

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home|Users|mnt)/\w|\bshared/(?:cases|reference|data|mockups)\b")
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")


@pytest.mark.parametrize("pattern", [MACHINE_PATH, UNFINISHED], ids=["machine path", "unfinished"])
def test_no_text_holds(pattern: re.Pattern[str]) -> None:
    found = [
        f"{name(path)}:{number}: {line.strip()}"
        for path in TEXTS
        if path.exists()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []


def test_everything_that_the_readme_shows_is_there() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    local = [target for target in re.findall(r"\]\(([^)#]+)\)", readme) if "://" not in target]
    assert [target for target in local if not (ROOT / target).exists()] == []


def commands(text: str) -> list[str]:
    """The one-line commands of a text: those that make the virtual environment."""
    return [line.strip() for line in text.splitlines() if line.strip().startswith("python3 -m venv .venv &&")]


def test_ci_runs_the_readmes_test_command_as_printed() -> None:
    printed = [line for line in commands((ROOT / "README.md").read_text("utf-8")) if line.endswith("-m pytest")]
    assert len(printed) == 1
    assert printed[0] in (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
