"""The pairs on offer, and the operator's own list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from specviz.models import catalogue
from specviz.models.catalogue import PairSpec, find, local_pair, pairs, read_pairs

OWN = """
[mine]
target = "models/big"
drafter = "models/small"
name = "My pair"

[alone]
target = "Qwen/Qwen3-8B"
drafter = "ngram"
"""


@pytest.fixture
def own_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("big", "small"):
        (tmp_path / "models" / name).mkdir(parents=True)
    path = tmp_path / "pairs.toml"
    path.write_text(OWN, encoding="utf-8")
    monkeypatch.setenv("SPECVIZ_PAIRS", str(path))
    return path


def test_what_ships(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECVIZ_PAIRS", raising=False)
    assert list(pairs()) == ["embedded", "qwen3-8b", "llama-3.1-8b"]
    for spec in pairs().values():
        assert spec.has_drafter_model
        assert spec.download_bytes is not None
        assert spec.download_bytes > 10**7
    assert "hf auth login" in find("llama-3.1-8b").note
    assert [spec.id for spec in pairs().values() if spec.gated] == ["llama-3.1-8b"]


def test_an_operators_pairs_follow_those_that_ship(own_list: Path) -> None:
    assert list(pairs())[-2:] == ["mine", "alone"]
    assert find("mine") == PairSpec(
        id="mine",
        name="My pair",
        target=str(own_list.parent / "models/big"),
        drafter=str(own_list.parent / "models/small"),
    )
    alone = find("alone")
    assert (alone.target, alone.drafter, alone.has_drafter_model) == ("Qwen/Qwen3-8B", "ngram", False)
    assert alone.name == "Qwen3-8B"


def test_a_folder_named_like_a_drafter_does_not_hide_the_drafter(own_list: Path) -> None:
    (own_list.parent / "target").mkdir()
    own_list.write_text('[own]\ntarget = "target"\ndrafter = "target"\n[two]\ntarget = "x/y"\ndrafter = "./target"')
    assert (find("own").target, find("own").drafter) == (str(own_list.parent / "target"), "target")
    assert find("two").drafter == str(own_list.parent / "target")


def test_an_operator_may_replace_a_pair_that_ships(own_list: Path) -> None:
    own_list.write_text('[qwen3-8b]\ntarget = "models/big"\n')
    assert find("qwen3-8b").drafter == "none"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[a]\ndrafter = "x"', r"a\.target is missing"),
        ('[a]\ntarget = "x"\ndraftr = "y"', r"a\.draftr is no key of a pair: allowed are target, drafter, name, note"),
        ("[a]\ntarget = 3", r"a\.target must be a text, got 3"),
        ('[a]\ntarget = ""', r"a\.target must be a text, got ''"),
        ('a = "x"', r"a must be a table with at least a target, got 'x'"),
        ("[a\n", r"SPECVIZ_PAIRS names .*pairs\.toml, which cannot be read: .*line 1"),
    ],
)
def test_a_wrong_entry_is_named(own_list: Path, text: str, message: str) -> None:
    own_list.write_text(text)
    with pytest.raises(ValueError, match=message):
        pairs()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"SPECVIZ_PAIRS names .*nowhere\.toml, which cannot be read: .*No such file"):
        read_pairs(tmp_path / "nowhere.toml")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "pairs.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="cannot be read"):
        read_pairs(tmp_path / "pairs.toml")


def test_an_unknown_pair_is_answered_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"one of embedded, qwen3-8b, llama-3\.1-8b.*, got 'gpt-9'"):
        find("gpt-9")


@pytest.mark.parametrize(
    ("drafter", "name"), [("x/small", "big with small"), ("target", "big"), ("none", "big"), ("ngram", "big")]
)
def test_a_pair_from_the_command_line(drafter: str, name: str) -> None:
    spec = local_pair("y/big", drafter)
    assert (spec.target, spec.drafter, spec.name, spec.download_bytes) == ("y/big", drafter, name, None)


def test_the_list_and_the_store_need_no_torch() -> None:
    """A page asks both before it has painted."""
    code = (
        "import sys; from specviz.models import catalogue, store; catalogue.pairs(); store.embedded_target(); "
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    root = Path(catalogue.__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
