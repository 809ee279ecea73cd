"""A pair is loaded only if it fits, from this machine only, and says in a sentence why it cannot be."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from specviz.models import loading
from specviz.models.catalogue import find, local_pair
from specviz.models.loading import LoadError, Pair, load_pair
from tests import tiny_models


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tiny_models.save_tiny_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def load(target: Path | str, drafter: Path | str = "none") -> Pair:
    return load_pair(local_pair(str(target), str(drafter)), device="cpu")


# --- what is loaded ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2", "mistral"])
def test_folders_of_any_family_load(family: str, tmp_path: Path) -> None:
    target, drafter = tiny_models.save_tiny_pair(tmp_path, family)
    pair = load(target, drafter)
    ids = pair.tokenizer.chat("The dog slept.")
    with torch.inference_mode():
        oracle = tiny_models.network(family)(torch.tensor([ids])).logits[0, -1]
    assert torch.allclose(pair.target().extend(ids).logits[0], oracle, atol=1e-4)
    p, q = (model.extend(ids).logits.softmax(-1) for model in (pair.target(), pair.drafter()))
    assert 0.05 < float(torch.minimum(p, q).sum()) < 0.999


def test_a_pair_says_what_it_is(tiny: tuple[Path, Path]) -> None:
    told: list[tuple[str, float | None]] = []
    pair = load_pair(
        local_pair(*map(str, tiny)), device="cpu", progress=lambda sentence, done: told.append((sentence, done))
    )
    assert (pair.device, pair.dtype, pair.vocab_size, pair.stop_ids) == ("cpu", "float32", 320, (0,))
    assert pair.threads == torch.get_num_threads()
    assert set(pair.versions) == {"specviz", "python", "torch", "transformers"}
    fractions = [done for _, done in told if done is not None]
    assert fractions == sorted(fractions)
    assert told[-1] == ("Ready", 1.0)


def test_readers_share_weights_and_never_caches(tiny: tuple[Path, Path]) -> None:
    pair = load(*tiny)
    first, second = pair.target(), pair.target()
    first.extend([1, 2, 3])
    assert second.length == 0
    assert first._network is second._network
    assert not any(weight.requires_grad for weight in pair.drafter_network.module.parameters())


def test_the_target_can_draft_for_itself(tiny: tuple[Path, Path]) -> None:
    pair = load(tiny[0], "target")
    for drafter in (pair.drafter(), pair.drafter("target")):
        assert torch.equal(drafter.extend([1, 2]).logits, pair.target().extend([1, 2]).logits)


@pytest.mark.parametrize("drafter", ["none", "ngram"])
def test_a_pair_without_a_drafter_model_says_so(drafter: str, tiny: tuple[Path, Path]) -> None:
    pair = load(tiny[0], drafter)
    with pytest.raises(ValueError, match="has no drafter model: drafter must be target, ngram or none"):
        pair.drafter()
    assert pair.drafter("target").extend([1]).logits.shape == (1, 320)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rows_are_float32_in_any_dtype(dtype: str, tiny: tuple[Path, Path]) -> None:
    pair = load_pair(local_pair(*map(str, tiny)), device="cpu", dtype=dtype)
    assert pair.dtype == dtype
    assert pair.target().extend([1]).logits.dtype == torch.float32


@pytest.mark.parametrize(("eos", "stops"), [(5, (0, 5)), ([7, 5], (0, 5, 7)), (None, (0,))])
def test_stop_ids_are_the_models_and_the_tokenizers(
    eos: int | list[int] | None, stops: tuple[int, ...], tmp_path: Path, tiny: tuple[Path, Path]
) -> None:
    shutil.copytree(tiny[0], tmp_path, dirs_exist_ok=True)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": eos}))
    assert load(tmp_path).stop_ids == stops


def test_a_model_without_a_stop_token_has_none(tmp_path: Path) -> None:
    tiny_models.network(eos_token_id=None).save_pretrained(tmp_path)
    tokenizer = tiny_models.tokenizer()
    tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    del config["eos_token"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert load(tmp_path).stop_ids == ()


# --- vocabularies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target_rows", [320, 352])
@pytest.mark.parametrize("drafter_rows", [320, 336, 384])
def test_padded_vocabularies_fit(target_rows: int, drafter_rows: int, tmp_path: Path) -> None:
    pair = load(
        tiny_models.save(tmp_path / "t", vocab_size=target_rows),
        tiny_models.save(tmp_path / "d", "qwen3", vocab_size=drafter_rows),
    )
    for model in (pair.target(), pair.drafter()):
        row = model.extend([1, 2, 319]).logits[0]
        assert row.shape == (target_rows,)
        assert row[:320].isfinite().all()
        assert row[320:].isneginf().all()


def save_with_swapped_tokens(folder: Path) -> None:
    """The same size, but two ids changed their strings."""
    tiny_models.save(folder)
    path = folder / "tokenizer.json"
    state = json.loads(path.read_text())
    vocab = state["model"]["vocab"]
    last, before = (next(token for token, i in vocab.items() if i == wanted) for wanted in (319, 318))
    vocab[last], vocab[before] = 318, 319
    path.write_text(json.dumps(state))


def test_other_tokens_under_the_same_ids_are_refused(tmp_path: Path, tiny: tuple[Path, Path]) -> None:
    save_with_swapped_tokens(tmp_path)
    with pytest.raises(LoadError, match="different vocabularies: id 318 means ") as refused:
        load(tiny[0], tmp_path)
    assert str(tiny[0]) in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_a_drafter_that_cannot_read_the_target_is_refused(tmp_path: Path, tiny: tuple[Path, Path]) -> None:
    tiny_models.save(tmp_path, vocab_size=300)
    with pytest.raises(LoadError, match="has 300 input rows, but id 300 means"):
        load(tiny[0], tmp_path)


# --- the embedded drafter's format ------------------------------------------------------------------------------------


def test_a_distilled_drafter_shares_the_targets_table(tmp_path: Path, tiny: tuple[Path, Path]) -> None:
    """What is kept is what is said; the table is the target's own memory; the layers survive the file."""
    target = tiny_models.network()
    pair = load(tiny[0], tiny_models.save_distilled(tmp_path, target, kept=200))
    drafter = pair.drafter_network.module
    table = pair.target_network.module.get_input_embeddings().weight
    assert drafter.get_input_embeddings().weight.data_ptr() == table.data_ptr()
    row = pair.drafter().extend([1, 2, 3]).logits[0]
    said = row.isfinite().nonzero().flatten().tolist()
    assert said == load_file(tmp_path / "model.safetensors")["kept_ids"].tolist()
    assert len(said) == 200
    # Two target layers under the target's norm are the whole tiny target, up to bfloat16 on disk.
    assert torch.allclose(row[said], pair.target().extend([1, 2, 3]).logits[0, said], atol=0.5)
    assert row[said].argmax() == pair.target().extend([1, 2, 3]).logits[0, said].argmax()


def test_a_distilled_drafter_is_small_on_disk(tmp_path: Path) -> None:
    tiny_models.save_distilled(tmp_path, tiny_models.network())
    weights = load_file(tmp_path / "model.safetensors")
    assert weights.pop("kept_ids").dtype == torch.int32
    assert {weight.dtype for weight in weights.values()} == {torch.bfloat16}
    assert all(key.startswith(("layers.0.", "layers.1.")) or key == "norm.weight" for key in weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("kept_ids"), "has no kept_ids"),
        (lambda weights: weights.pop("norm.weight"), "made for another target"),
        (lambda weights: weights.update({"norm.weight": torch.ones(8)}), "made for another target"),
        (lambda weights: weights.update({"kept_ids": torch.tensor([3, 320])}), r"kept ids must be in 0\.\.319"),
    ],
    ids=["no ids", "no norm", "another width", "foreign ids"],
)
def test_a_drafter_that_does_not_fit_is_refused(
    change: Callable[[dict[str, torch.Tensor]], object], message: str, tmp_path: Path, tiny: tuple[Path, Path]
) -> None:
    path = tiny_models.save_distilled(tmp_path, tiny_models.network()) / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)
    with pytest.raises(LoadError, match=message):
        load(tiny[0], tmp_path)


def test_a_distilled_drafter_for_another_family_is_refused(tmp_path: Path) -> None:
    drafter = tiny_models.save_distilled(tmp_path / "d", tiny_models.network())
    with pytest.raises(LoadError, match="made for a llama target, got qwen3"):
        load(tiny_models.save(tmp_path / "t", "qwen3"), drafter)


# --- what cannot be loaded --------------------------------------------------------------------------------------------


def test_nothing_is_fetched_without_being_asked() -> None:
    """The session's guard fails any connection; the sentence says how to fetch it."""
    with pytest.raises(LoadError, match=r"Qwen/Qwen3-8B is not on this machine .*: run `hf download Qwen/Qwen3-8B"):
        load_pair(find("qwen3-8b"), device="cpu")


def test_a_gated_model_says_how_to_get_access() -> None:
    with pytest.raises(LoadError, match=r"accept the licence .* `hf auth login`, and run `hf download meta-llama"):
        load_pair(find("llama-3.1-8b"), device="cpu")


def test_the_embedded_pair_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    with pytest.raises(LoadError, match=r"run `python -m specviz fetch` \(93 MB, once\)"):
        load_pair(find("embedded"))


@pytest.mark.parametrize("name", ["/no/such/folder", "nowhere", "a/b/c", "", "https://example.org/model"])
def test_neither_a_folder_nor_a_hub_name(name: str) -> None:
    with pytest.raises(LoadError, match="is neither a folder nor a model of the Hugging Face hub"):
        load(name)


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="holds no model that can be read"):
        load(tmp_path)


def test_a_truncated_file_is_no_model(tmp_path: Path, tiny: tuple[Path, Path]) -> None:
    shutil.copytree(tiny[0], tmp_path, dirs_exist_ok=True)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(LoadError, match="holds no model that can be read"):
        load(tmp_path)


def test_missing_weights_are_not_made_up(tmp_path: Path, tiny: tuple[Path, Path]) -> None:
    shutil.copytree(tiny[0], tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(LoadError, match=r"weights are missing: model\.layers\.1\.mlp\.up_proj\.weight"):
        load(tmp_path)


def test_code_that_comes_with_a_model_is_never_run(tmp_path: Path, tiny: tuple[Path, Path]) -> None:
    shutil.copytree(tiny[0], tmp_path, dirs_exist_ok=True)
    mark = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass Evil: ...\n")
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(LoadError, match="holds no model that can be read"):
        load(tmp_path)
    assert not mark.exists()


def test_a_model_that_cannot_roll_back_is_refused(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, MambaConfig

    config = MambaConfig(vocab_size=320, hidden_size=32, num_hidden_layers=1)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    tiny_models.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(LoadError, match="cannot be rolled back"):
        load(tmp_path)


@pytest.mark.parametrize("device", ["tpu", "mps", "meta", "cuda:99", ""])
def test_an_unknown_device_is_named(device: str, tiny: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match=f"cpu or a CUDA device of this machine, got '{device}'"):
        load_pair(local_pair(str(tiny[0])), device=device)


def test_an_unknown_dtype_is_named(tiny: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="one of float32, bfloat16, float16, got 'int4'"):
        load_pair(local_pair(str(tiny[0])), device="cpu", dtype="int4")


# --- the embedded pair ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_embedded_target_knows_its_chat(embedded_target: None) -> None:
    """Its stop token ends every turn, the template adds its system prompt, and it answers in English."""
    from dataclasses import replace

    pair = load_pair(replace(find("embedded"), drafter="none"), device="cpu")
    ids = pair.tokenizer.chat("What is the capital of France?")
    assert pair.stop_ids == (2,)
    assert pair.tokenizer.bytes(2) == b"<|im_end|>"
    assert pair.tokenizer.decode(ids).startswith("<|im_start|>system\nYou are a helpful AI assistant")
    assert pair.vocab_size == pair.tokenizer.real_ids == 49_152
    model, text = pair.target(), ids
    while len(text) < len(ids) + 20 and text[-1] not in pair.stop_ids:
        text = [*text, int(model.extend(text[model.length :]).logits[-1].argmax())]
    assert "Paris" in pair.tokenizer.decode(text[len(ids) :])


@pytest.mark.slow
def test_the_embedded_drafter_says_its_kept_ids(embedded_pair: Pair) -> None:
    row = embedded_pair.drafter().extend(embedded_pair.tokenizer.chat("Hello")).logits[0]
    assert row.shape == (49_152,)
    assert int(row.isfinite().sum()) == 8_192


def test_the_embedded_drafter_stands_beside_the_package() -> None:
    assert loading.EMBEDDED_DRAFTER.parts[-2:] == ("assets", "drafter")
