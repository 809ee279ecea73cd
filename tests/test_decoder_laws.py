"""The law of the decoder's text: whatever it caches, draws, cuts and records, what comes out follows the target."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from specviz.noise import gumbel, uniform
from specviz.probability import inverse_cdf
from specviz.rules import RULES, WRONG_RULES
from tests.decoding_runs import SAMPLING_RULES, decode
from tests.table_models import TablePair, random_table

VOCAB, LENGTH, RUNS = 4, 3, 300
P = np.array([[3, 3, 2, 2], [2, 3, 3, 2], [2, 2, 3, 3], [3, 2, 2, 3]]) / 10
Q = np.array([[48, 48, 2, 2], [2, 48, 48, 2], [2, 2, 48, 48], [48, 2, 2, 48]]) / 100
"""Row by previous token. The drafter says two tokens only, nearly: half of its drafts die, so corrections count."""


def by_last_token(table: np.ndarray) -> Callable[[Sequence[int]], Sequence[float]]:
    logs = np.log(table)
    return lambda ids: logs[ids[-1]]


UNEVEN = np.array([Q[0], [1, 1, 1, 1], Q[2], [1, 1, 1, 1]]) / np.array([[1], [4], [1], [4]])
"""A drafter that knows nothing behind tokens 1 and 3."""


def false_alarm_odds(rule: str, gamma: int, q: np.ndarray = Q, **settings: float) -> float:
    """Chance of a chi-square at least as large as that of 300 texts of three tokens, one a seed.

    After token 0 there are 64 texts, of which 2.4 to 8.1 runs are expected each.
    """
    pair = TablePair(by_last_token(P), by_last_token(q), vocab_size=VOCAB)
    observed = dict.fromkeys(product(range(VOCAB), repeat=LENGTH), 0)
    for seed in range(RUNS):
        observed[decode(pair, LENGTH, "a", rule=rule, gamma=gamma, seed=seed, **settings).text_ids] += 1
    expected = [RUNS * np.prod([P[i, j] for i, j in zip((0, *text), text, strict=False)]) for text in observed]
    return float(stats.chisquare(list(observed.values()), expected).pvalue)


@pytest.mark.parametrize("rule", SAMPLING_RULES)
def test_texts_follow_the_targets_joint_law(rule: str) -> None:
    """Odds of a false alarm: 1e-4 a rule; the seeds are fixed, so it does not come and go."""
    assert false_alarm_odds(rule, gamma=2) > 1e-4


def test_as_few_texts_show_a_correction_from_p(monkeypatch: pytest.MonkeyPatch) -> None:
    """The power of the test above: with a wrong rule in place of the right one its odds fall below 1e-6."""
    monkeypatch.setitem(RULES, "speculative_sampling", WRONG_RULES["resample_from_p"])
    assert false_alarm_odds("speculative_sampling", gamma=2) < 1e-6


@pytest.mark.parametrize("rule", SAMPLING_RULES)
def test_a_draft_that_ends_before_a_draw_leaves_the_law_alone(rule: str) -> None:
    assert false_alarm_odds(rule, gamma=3, q=UNEVEN, stop_below=0.4) > 1e-4


@pytest.mark.parametrize("gamma", [1, 2])
@pytest.mark.parametrize("rule", SAMPLING_RULES)
def test_every_number_drawn_is_the_one_for_its_seed_stream_and_position(rule: str, gamma: int) -> None:
    """Which is what the proofs of the rules' laws assume of the decoder's noise; block verification adds the start."""
    seed, vocab = 11, 4
    pair = TablePair(random_table(3, vocab, spread=0.7), random_table(4, vocab, spread=0.7), vocab_size=vocab)
    trace = decode(pair, 40, "abc", rule=rule, gamma=gamma, seed=seed)
    kinds = set()
    for round_ in trace.rounds:
        start = round_.position if RULES[rule].by_round else 0
        for place, draft in enumerate(round_.drafts):
            position = round_.position + place
            assert draft.row is not None
            q = np.array([token.q for token in sorted(draft.row.tokens, key=lambda token: token.id)])
            p = np.array([token.p for token in sorted(draft.row.tokens, key=lambda token: token.id)])
            race = gumbel(seed, position, vocab)
            if rule == "gumbel_coupling":
                assert draft.id == np.argmax(np.log(q) + race)
                assert [token.noise for token in draft.row.tokens] == [race[token.id] for token in draft.row.tokens]
            else:
                assert draft.id == inverse_cdf(q, uniform(seed, "draft", position, start))
            if draft.coin is not None:
                assert draft.coin == uniform(seed, "accept", position, start)
                assert draft.passed == (draft.coin < (draft.accept_prob or 0))
            if draft.target_id is not None:
                own = uniform(seed, "target", position, start)
                assert draft.target_id == (
                    np.argmax(np.log(p) + race) if rule == "gumbel_coupling" else inverse_cdf(p, own)
                )
        closing = round_.closing
        assert closing is not None
        kinds.add(closing.kind)
        if rule != "gumbel_coupling":
            corrects = closing.kind == "correction" and rule != "token_match"
            position = round_.position + round_.kept
            draw = uniform(seed, "residual" if corrects else "target", position, start)
            assert closing.draw == draw
            law = np.zeros(vocab)
            for token_id, probability in closing.law or ():
                law[token_id] = probability
            assert closing.id == inverse_cdf(law, draw)
    assert {"bonus", "correction"} <= kinds


def test_no_shared_generator_is_drawn_from_or_seeded() -> None:
    before = torch.get_rng_state(), random.getstate()
    for rule in SAMPLING_RULES:
        decode(TablePair(random_table(3, 6), random_table(4, 6), vocab_size=6), 8, rule=rule)
    assert before[0].equal(torch.get_rng_state())
    assert before[1] == random.getstate()
