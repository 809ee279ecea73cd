"""A reader's cache never shows: whatever was fed and rolled back, its logits are those of a fresh read of its ids."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, Lfm2Config, LlamaConfig, MambaConfig
from transformers.modeling_outputs import CausalLMOutputWithPast

from specviz.models.drafter import DrafterNetwork
from specviz.models.language_model import LanguageModel
from tests import tiny_models

FAMILIES = ("llama", "qwen3", "gpt2", "mistral")
VOCAB = 64


@cache
def network(family: str) -> Any:
    return tiny_models.network(family, vocab_size=VOCAB)


def reader(family: str = "llama", **changes: Any) -> LanguageModel:
    return LanguageModel(network(family), **{"vocab_size": VOCAB, "real_ids": VOCAB} | changes)


def fresh(family: str, ids: list[int]) -> Tensor:
    """The oracle: one pass without any cache. (len(ids), vocab)."""
    with torch.inference_mode():
        return network(family)(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def same(left: Tensor, right: Tensor) -> bool:
    """Equal up to the order of additions, which changes with the shape of a pass."""
    return torch.allclose(left, right, rtol=0.0, atol=1e-4) and torch.equal(left.argmax(-1), right.argmax(-1))


class FixedLogits(nn.Module):
    """A network that answers every token with the same row of logits, and fails when it is told to."""

    def __init__(self, row: list[float]) -> None:
        super().__init__()
        self.config = LlamaConfig(vocab_size=len(row), num_hidden_layers=1, eos_token_id=None, bos_token_id=None)
        self.row = nn.Buffer(torch.tensor(row))
        self.table = nn.Embedding(len(row), 1)
        self.fails = False

    def get_input_embeddings(self) -> nn.Module:
        return self.table

    def forward(self, input_ids: Tensor, cache: Any, logits_to_keep: int, **_: Any) -> CausalLMOutputWithPast:
        states = torch.zeros(1, 1, input_ids.shape[1], 1)
        cache.update(states, states, 0)
        if self.fails:
            raise KeyboardInterrupt
        return CausalLMOutputWithPast(logits=self.row.expand(1, logits_to_keep, -1))


def fixed(row: list[float], vocab_size: int, real_ids: int) -> LanguageModel:
    return LanguageModel(FixedLogits(row), vocab_size=vocab_size, real_ids=real_ids)


# --- the cache --------------------------------------------------------------------------------------------------------

moves = st.lists(
    st.tuples(st.integers(0, 12), st.lists(st.integers(0, VOCAB - 1), max_size=7), st.integers(0, 7)), max_size=8
)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25)
@given(moves=moves)
def test_any_mix_of_reads_and_rollbacks_equals_a_fresh_read(
    family: str, moves: list[tuple[int, list[int], int]]
) -> None:
    """Rollbacks reach back as far as they like, also behind a window of eight tokens that has long been full."""
    model, expected = reader(family), []
    for back, ids, rows in moves:
        back, rows = min(back, len(expected)), min(rows, len(ids))
        model.rollback(back)
        expected = expected[: len(expected) - back] + ids
        read = model.extend(ids, rows)
        assert model.ids == expected
        assert model.length == len(expected)
        if rows:
            assert same(read.logits, fresh(family, expected)[-rows:])


@pytest.mark.parametrize("prompt_tokens", [6, 8, 9, 12, 20])
@pytest.mark.parametrize("family", FAMILIES)
def test_rejected_drafts_leave_no_trace(family: str, prompt_tokens: int) -> None:
    """A round of gamma 3 in which every draft dies: the next logits are those of the prompt and the correction."""
    prompt = [(7 * i + 3) % VOCAB for i in range(prompt_tokens)]
    model = reader(family)
    model.extend(prompt)
    model.extend([1, 2, 3], rows=3)
    model.rollback(3)
    assert same(model.extend([9]).logits, fresh(family, [*prompt, 9])[-1:])


@pytest.mark.parametrize(("back", "left"), [(0, 3), (1, 2), (3, 0)])
def test_rollback_removes_exactly_what_it_is_told(back: int, left: int) -> None:
    model = reader()
    model.extend([5, 6, 7])
    model.rollback(back)
    assert model.length == left
    assert model.ids == [5, 6, 7][:left]
    assert same(model.extend([8]).logits, fresh("llama", [*[5, 6, 7][:left], 8])[-1:])


@pytest.mark.parametrize("back", [-1, 4, 5])
def test_rollback_refuses_what_is_not_there(back: int) -> None:
    model = reader()
    model.extend([5, 6, 7])
    with pytest.raises(ValueError, match=rf"0\.\.3 tokens, got {back}"):
        model.rollback(back)
    assert model.ids == [5, 6, 7]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("widths", [[8], [4, 4], [1] * 8])
def test_the_shape_of_the_passes_does_not_matter(family: str, widths: list[int]) -> None:
    ids = [3, 14, 15, 9, 26, 5, 35, 8]
    model, rows, start = reader(family), [], 0
    for width in widths:
        rows.append(model.extend(ids[start : start + width], rows=width).logits)
        start += width
    assert same(torch.cat(rows), fresh(family, ids))


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_text_is_the_same_with_and_without_a_cache(family: str) -> None:
    """Rounds of zero to two right drafts and two wrong ones, against fresh passes over all ids."""
    model, text, plain = reader(family), [3, 4, 5], [3, 4, 5]
    for _ in range(24):
        plain.append(int(fresh(family, plain)[-1].argmax()))
    while len(text) < len(plain):
        drafts = [*plain[len(text) :][: len(text) % 3], 0, 1]
        winners = model.extend(text[model.length :] + drafts, rows=len(drafts) + 1).logits.argmax(-1).tolist()
        kept = next((i for i, draft in enumerate(drafts) if draft != winners[i]), len(drafts))
        model.rollback(len(drafts) - kept)
        text += winners[: kept + 1]
    assert text[: len(plain)] == plain


@pytest.mark.parametrize(
    "config",
    [
        MambaConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2),
        Lfm2Config(
            vocab_size=VOCAB,
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            layer_types=["conv", "full_attention"],
        ),
    ],
    ids=["mamba", "lfm2"],
)
def test_a_state_that_cannot_be_rolled_back_is_refused(config: Any) -> None:
    with pytest.raises(ValueError, match=f"{config.model_type} model keeps a state that cannot be rolled back"):
        LanguageModel(AutoModelForCausalLM.from_config(config), vocab_size=VOCAB, real_ids=VOCAB)


def test_a_read_that_fails_leaves_no_half_read() -> None:
    """The network fails after its cache grew; afterwards the reader is empty and works."""
    model = fixed([0.0, 1.0], 2, 2)
    model.extend([0, 1])
    model._network.fails = True
    with pytest.raises(KeyboardInterrupt):
        model.extend([1])
    assert (model.length, model._cache.get_seq_length()) == (0, 0)
    model._network.fails = False
    assert model.extend([0, 1, 1]).context == 0
    assert model.length == model._cache.get_seq_length() == 3


# --- rows -------------------------------------------------------------------------------------------------------------


def test_feeding_nothing_does_nothing() -> None:
    model = reader()
    model.extend([5, 6])
    read = model.extend([])
    assert (tuple(read.logits.shape), read.query_tokens, read.context, read.seconds) == ((0, VOCAB), 0, 2, 0.0)
    assert model.ids == [5, 6]


@pytest.mark.parametrize("rows", range(5))
def test_only_the_rows_asked_for_are_computed(rows: int) -> None:
    """The head costs as much as several layers; the rows of a prompt are not paid for."""
    seen: list[int] = []
    head = network("llama").get_output_embeddings()
    watch = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[1]))
    read = reader().extend([1, 2, 3, 4], rows)
    watch.remove()
    assert read.logits.shape == (rows, VOCAB)
    assert seen == [max(rows, 1)]


@pytest.mark.parametrize("rows", [-1, 3])
def test_rows_are_at_most_the_ids_fed(rows: int) -> None:
    model = reader()
    with pytest.raises(ValueError, match=rf"0\.\.2, the number of ids fed, got {rows}"):
        model.extend([1, 2], rows)
    assert model.length == 0


def test_a_read_says_what_it_was() -> None:
    model = reader()
    model.extend([1, 2, 3])
    read = model.extend([4, 5], rows=2)
    assert (read.query_tokens, read.context) == (2, 3)
    assert 0.0 < read.seconds < 10.0
    assert read.logits.dtype == torch.float32
    assert read.hidden is None


@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_are_what_the_head_saw(family: str) -> None:
    read = reader(family).extend([1, 2, 3], rows=2, hidden=True)
    assert read.hidden is not None
    assert torch.allclose(network(family).get_output_embeddings()(read.hidden), read.logits, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_position_can_be_read_and_none_behind_it(family: str) -> None:
    model = reader(family)
    assert model.max_positions == 256
    model.extend([1] * 255)
    with pytest.raises(ValueError, match="at most 256 tokens, got 257"):
        model.extend([1, 1])
    assert model.length == 255
    assert model.extend([1]).logits.isfinite().all()


@pytest.mark.parametrize("foreign", [-1, VOCAB, 49250])
def test_a_foreign_id_never_reaches_the_network(foreign: int) -> None:
    model = reader()
    with pytest.raises(ValueError, match=rf"0\.\.{VOCAB - 1}, got {foreign}"):
        model.extend([1, foreign, 2])
    assert model.length == 0


# --- vocabularies -----------------------------------------------------------------------------------------------------


def test_padding_has_no_probability() -> None:
    """The largest logits of both models stand on ids that no token has."""
    target = fixed([1, 0, 2, 0.5, 3, 9], vocab_size=6, real_ids=4)
    drafter = fixed([0, 1, 2, 0, 9], vocab_size=6, real_ids=4)
    p = target.extend([1]).logits[0].double().softmax(-1)
    q = drafter.extend([1]).logits[0].double().softmax(-1)
    assert p.tolist() == pytest.approx([0.213097304, 0.078394117, 0.57925853, 0.129250049, 0, 0], abs=1e-9)
    assert q.tolist() == pytest.approx([0.082594539, 0.224515236, 0.610295685, 0.082594539, 0, 0], abs=1e-9)
    assert p[4:].tolist() == q[4:].tolist() == [0, 0]


@pytest.mark.parametrize("drafter_rows", [4, 5, 6, 8])
def test_a_drafter_of_any_width_returns_rows_of_the_targets(drafter_rows: int) -> None:
    logits = fixed([float(i) for i in range(drafter_rows)], vocab_size=6, real_ids=4).extend([1, 2], rows=2).logits
    assert logits.tolist() == [[0, 1, 2, 3, -torch.inf, -torch.inf]] * 2


def test_a_reduced_head_says_its_ids_and_no_others() -> None:
    target = network("llama")
    kept = torch.tensor([3, 9, 40, 41])
    drafter = DrafterNetwork(target, kept).eval()
    row = LanguageModel(drafter, vocab_size=VOCAB, real_ids=VOCAB, kept_ids=drafter.kept_ids).extend([1, 2]).logits[0]
    assert row.isfinite().nonzero().flatten().tolist() == kept.tolist()
    with torch.inference_mode():
        states = drafter.body(input_ids=torch.tensor([[1, 2]])).last_hidden_state[0, -1]
    assert torch.allclose(row[kept], target.get_input_embeddings().weight[kept] @ states, atol=1e-5)


# --- readers side by side ---------------------------------------------------------------------------------------------


def greedy_text(model: LanguageModel, prompt: list[int], steps: int) -> list[int]:
    """Greedy text with a rejected draft before every token."""
    ids = list(prompt)
    for _ in range(steps):
        ids.append(int(model.extend(ids[model.length :]).logits[-1].argmax()))
        model.extend([0, 1])
        model.rollback(2)
    return ids


def test_readers_of_the_same_weights_do_not_disturb_each_other() -> None:
    """Six threads with a cache each write what each writes alone."""
    prompts = [[3, 4, 5], [9, 8, 7], [1], [60, 2], [33] * 9, [11, 12, 13, 14]]
    alone = [greedy_text(reader("mistral"), prompt, 30) for prompt in prompts]
    with ThreadPoolExecutor(len(prompts)) as pool:
        together = list(pool.map(lambda prompt: greedy_text(reader("mistral"), prompt, 30), prompts))
    assert together == alone
    assert len({tuple(text[-20:]) for text in alone}) > 1, "texts that are all alike would hide a mix-up"


def test_reading_changes_no_weight_and_seeds_nothing() -> None:
    before, state = copy.deepcopy(network("qwen3").state_dict()), torch.get_rng_state()
    greedy_text(reader("qwen3"), [1, 2, 3], 5)
    assert all(torch.equal(before[name], weight) for name, weight in network("qwen3").state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.gpu
@pytest.mark.parametrize("family", FAMILIES)
def test_a_gpu_reads_as_the_cpu_does(family: str, cuda: str) -> None:
    on_gpu = LanguageModel(copy.deepcopy(network(family)).to(cuda), vocab_size=VOCAB, real_ids=VOCAB)
    on_gpu.extend([3, 1, 4, 1, 5])
    on_gpu.rollback(2)
    read = on_gpu.extend([9, 2], rows=2)
    assert read.logits.device.type == "cuda"
    assert 0.0 < read.seconds < 10.0
    assert torch.allclose(read.logits.cpu(), fresh(family, [3, 1, 4, 9, 2])[-2:], atol=1e-3)
