"""The real pair: what the README and the page promise of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specviz.decoding.decoder import Decoder
from specviz.decoding.settings import Settings
from specviz.trace import Trace
from specviz.training.prompts import HELD_OUT

if TYPE_CHECKING:
    from specviz.models.loading import Pair

pytestmark = pytest.mark.slow

PROMPTS = [prompt for several in HELD_OUT.values() for prompt in several[:4]]


def decoded(pair: Pair, prompt: str, settings: Settings, length: int) -> Trace:
    decoder = Decoder.start(pair, prompt, settings, length)
    while not decoder.finished:
        decoder.step()
    return decoder.trace


@pytest.mark.parametrize("rule", ["greedy", "gumbel_coupling"])
def test_the_text_is_the_targets_own_on_twenty_prompts(embedded_pair: Pair, rule: str) -> None:
    assert len(PROMPTS) == 20
    for seed, prompt in enumerate(PROMPTS):
        alone = decoded(embedded_pair, prompt, Settings(rule=rule, seed=seed, gamma=0), 14)
        drafted = decoded(embedded_pair, prompt, Settings(rule=rule, seed=seed, gamma=4), 14)
        assert drafted.text_ids == alone.text_ids, prompt
        assert len(drafted.rounds) <= len(alone.rounds)


def test_the_target_keeps_everything_that_it_drafts_itself(embedded_pair: Pair) -> None:
    settings = Settings(drafter="target", seed=3)
    decoder = Decoder.start(embedded_pair, PROMPTS[0], settings, 200, stop_ids=())
    while not decoder.finished:
        round_ = decoder.step()
        assert round_.kept == len(round_.drafts)
    assert len(decoder.trace.text_ids) == 200
    assert len(decoder.trace.rounds) == 40
