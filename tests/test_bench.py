"""The benchmarks print what they name, and refuse in one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specviz.cli.main import main
from specviz.rules import RULES, WRONG_RULES
from tests import tiny_models


@pytest.fixture
def pairs_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list of pairs with a small one in it."""
    target, drafter = tiny_models.save_tiny_pair(tmp_path)
    listed = tmp_path / "pairs.toml"
    listed.write_text(
        f'[tiny]\ntarget = "{target.name}"\ndrafter = "{drafter.name}"\n[alone]\ntarget = "{target.name}"\n'
    )
    monkeypatch.setenv("SPECVIZ_PAIRS", str(listed))
    return listed


def test_a_round_is_measured_beside_the_reads_it_is_made_of(
    pairs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "round", "--pair", "tiny", "--gamma", "2", "--rounds", "3"]) == 0
    table = capsys.readouterr().out

    def milliseconds(name: str) -> float:
        found = re.search(rf"{name} +([\d.]+) ms", table)
        assert found, table
        return float(found[1])

    assert 0 < milliseconds("without its record") <= milliseconds("a live round at gamma 2")
    assert re.search(r"a read of the target of 1 +[\d.]+ ms +1\.00\b", table)
    assert milliseconds("a step of the drafter") > 0


def test_every_rule_is_dealt_and_its_time_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("specviz.cli.bench.VOCABULARIES", (20, 300))
    assert main(["bench", "laboratory", "--deals", "1"]) == 0
    table = capsys.readouterr().out
    for rule in RULES | WRONG_RULES:
        assert re.search(rf"^{rule} +300 +100,000 +\d+\.\d\d s +<= 1 s$", table, re.MULTILINE)
    assert re.search(r"^gumbel_coupling +20 +100,000 +", table, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["round", "--gamma", "17"], "17"),
        (["round", "--pair", "nowhere"], "nowhere"),
        (["round", "--pair", "alone"], "alone"),
    ],
)
def test_what_cannot_be_measured_is_named(
    arguments: list[str], named: str, pairs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 2
    assert named in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "-1", "2.5", "many"])
def test_a_count_is_a_whole_number_from_1(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "ui", "--clicks", count])
    assert ended.value.code == 2
    assert count in capsys.readouterr().err


def test_without_a_browser_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("specviz.cli.browser.find_chromium", lambda: None)
    assert main(["bench", "start"]) == 1
    assert "apt-get install chromium" in capsys.readouterr().err
