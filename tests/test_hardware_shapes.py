from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

from specviz.hardware.shapes import PRICED_PAIRS, SHAPES, ModelShape, embedded_drafter, from_config

ROOT = Path(__file__).parent.parent

KNOWN = {  # unique parameters, bytes a token leaves in a 16-bit cache, GB read a pass at 16 bits
    "qwen3-0.6b": (596_049_920, 114_688, 1.192),
    "qwen3-1.7b": (1_720_574_976, 114_688, 3.441),
    "qwen3-4b": (4_022_468_096, 147_456, 8.045),
    "qwen3-8b": (8_190_735_360, 147_456, 15.137),
    "qwen3-14b": (14_768_307_200, 163_840, 27.981),
    "qwen3-32b": (32_762_123_264, 262_144, 63.968),
    "llama-3.2-1b": (1_235_814_400, 32_768, 2.472),
    "llama-3.2-3b": (3_212_749_824, 114_688, 6.425),
    "llama-3.1-8b": (8_030_261_248, 131_072, 15.010),
    "llama-3.1-70b": (70_553_706_496, 327_680, 139.006),
    "llama-2-7b": (6_738_415_616, 524_288, 13.215),
    "tinyllama-1.1b": (1_100_048_384, 22_528, 2.069),
    "qwen2.5-0.5b": (494_032_768, 12_288, 0.988),
    "qwen2.5-1.5b": (1_543_714_304, 28_672, 3.087),
    "qwen2.5-7b": (7_615_616_512, 57_344, 14.141),
    "smollm2-135m": (134_515_008, 23_040, 0.269),
    "smollm2-360m": (361_821_120, 40_960, 0.724),
    "smollm2-1.7b": (1_711_376_384, 196_608, 3.423),
    "gemma-2-2b": (2_614_341_888, 106_496, 5.229),
    "gemma-2-9b": (9_241_705_984, 344_064, 18.483),
    "gemma-2-27b": (27_227_128_320, 376_832, 54.454),
    "gemma-3-270m": (268_098_176, 18_432, 0.536),
    "gemma-3-1b": (999_885_952, 26_624, 2.000),
    "pythia-70m": (70_426_624, 12_288, 0.089),
    "pythia-160m": (162_322_944, 36_864, 0.247),
    "pythia-410m": (405_334_016, 98_304, 0.708),
    "pythia-1b": (1_011_781_632, 131_072, 1.818),
    "pythia-1.4b": (1_414_647_808, 196_608, 2.623),
    "pythia-2.8b": (2_775_208_960, 327_680, 5.293),
    "pythia-6.9b": (6_857_302_016, 524_288, 13.301),
    "pythia-12b": (11_846_072_320, 737_280, 23.173),
    "distilgpt2": (81_912_576, 18_432, 0.164),
    "gpt2": (124_439_808, 36_864, 0.249),
    "gpt2-medium": (354_823_168, 98_304, 0.710),
    "gpt2-large": (774_030_080, 184_320, 1.548),
    "gpt2-xl": (1_557_611_200, 307_200, 3.115),
}

GATED = (
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
)
CONFIGS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "smollm2-135m": ("Llama", (30, 576, 1536, 9, 3, 64, 49152), {"tie_word_embeddings": True}),
    "smollm2-360m": ("Llama", (32, 960, 2560, 15, 5, 64, 49152), {"tie_word_embeddings": True}),
    "smollm2-1.7b": ("Llama", (24, 2048, 8192, 32, 32, 64, 49152), {"tie_word_embeddings": True}),
    "llama-3.2-1b": ("Llama", (16, 2048, 8192, 32, 8, 64, 128256), {"tie_word_embeddings": True}),
    "llama-3.2-3b": ("Llama", (28, 3072, 8192, 24, 8, 128, 128256), {"tie_word_embeddings": True}),
    "llama-3.1-8b": ("Llama", (32, 4096, 14336, 32, 8, 128, 128256), {"tie_word_embeddings": False}),
    "llama-3.1-70b": ("Llama", (80, 8192, 28672, 64, 8, 128, 128256), {"tie_word_embeddings": False}),
    "llama-2-7b": ("Llama", (32, 4096, 11008, 32, 32, 128, 32000), {"tie_word_embeddings": False}),
    "tinyllama-1.1b": ("Llama", (22, 2048, 5632, 32, 4, 64, 32000), {"tie_word_embeddings": False}),
    "qwen3-0.6b": ("Qwen3", (28, 1024, 3072, 16, 8, 128, 151936), {"tie_word_embeddings": True}),
    "qwen3-1.7b": ("Qwen3", (28, 2048, 6144, 16, 8, 128, 151936), {"tie_word_embeddings": True}),
    "qwen3-4b": ("Qwen3", (36, 2560, 9728, 32, 8, 128, 151936), {"tie_word_embeddings": True}),
    "qwen3-8b": ("Qwen3", (36, 4096, 12288, 32, 8, 128, 151936), {"tie_word_embeddings": False}),
    "qwen3-14b": ("Qwen3", (40, 5120, 17408, 40, 8, 128, 151936), {"tie_word_embeddings": False}),
    "qwen3-32b": ("Qwen3", (64, 5120, 25600, 64, 8, 128, 151936), {"tie_word_embeddings": False}),
    "qwen3-30b-a3b": (
        "Qwen3Moe",
        (48, 2048, 6144, 32, 4, 128, 151936),
        {"tie_word_embeddings": False, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8},
    ),
    "qwen2.5-0.5b": ("Qwen2", (24, 896, 4864, 14, 2, 64, 151936), {"tie_word_embeddings": True}),
    "qwen2.5-1.5b": ("Qwen2", (28, 1536, 8960, 12, 2, 128, 151936), {"tie_word_embeddings": True}),
    "qwen2.5-3b": ("Qwen2", (36, 2048, 11008, 16, 2, 128, 151936), {"tie_word_embeddings": True}),
    "qwen2.5-7b": ("Qwen2", (28, 3584, 18944, 28, 4, 128, 152064), {"tie_word_embeddings": False}),
    "qwen2.5-14b": ("Qwen2", (48, 5120, 13824, 40, 8, 128, 152064), {"tie_word_embeddings": False}),
    "qwen2.5-32b": ("Qwen2", (64, 5120, 27648, 40, 8, 128, 152064), {"tie_word_embeddings": False}),
    "qwen2.5-72b": ("Qwen2", (80, 8192, 29568, 64, 8, 128, 152064), {"tie_word_embeddings": False}),
    "gemma-2-2b": ("Gemma2", (26, 2304, 9216, 8, 4, 256, 256000), {"sliding_window": 4096}),
    "gemma-2-9b": ("Gemma2", (42, 3584, 14336, 16, 8, 256, 256000), {"sliding_window": 4096}),
    "gemma-2-27b": ("Gemma2", (46, 4608, 36864, 32, 16, 128, 256000), {"sliding_window": 4096}),
    "gemma-3-270m": ("Gemma3Text", (18, 640, 2048, 4, 1, 256, 262144), {"sliding_window": 512}),
    "gemma-3-1b": ("Gemma3Text", (26, 1152, 6912, 4, 1, 256, 262144), {"sliding_window": 512}),
    "gemma-3-4b": ("Gemma3Text", (34, 2560, 10240, 8, 4, 256, 262208), {"sliding_window": 1024}),
    "gemma-3-12b": ("Gemma3Text", (48, 3840, 15360, 16, 8, 256, 262208), {"sliding_window": 1024}),
    "gemma-3-27b": ("Gemma3Text", (62, 5376, 21504, 32, 16, 128, 262208), {"sliding_window": 1024}),
}
NEOX = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "vocab_size")
PYTHIA = {
    "pythia-70m": (6, 512, 2048, 8, 50304),
    "pythia-160m": (12, 768, 3072, 12, 50304),
    "pythia-410m": (24, 1024, 4096, 16, 50304),
    "pythia-1b": (16, 2048, 8192, 8, 50304),
    "pythia-1.4b": (24, 2048, 8192, 16, 50304),
    "pythia-2.8b": (32, 2560, 10240, 32, 50304),
    "pythia-6.9b": (32, 4096, 16384, 32, 50432),
    "pythia-12b": (36, 5120, 20480, 40, 50688),
}
GPT2 = {
    "distilgpt2": (6, 768, 12),
    "gpt2": (12, 768, 12),
    "gpt2-medium": (24, 1024, 16),
    "gpt2-large": (36, 1280, 20),
    "gpt2-xl": (48, 1600, 25),
}
HAND_WRITTEN = (*CONFIGS, *PYTHIA, *GPT2)


def config_of(key: str) -> Any:
    """The transformers configuration of a shape, written by hand: nothing is fetched."""
    import transformers

    if key in PYTHIA:
        sizes = dict(zip(NEOX, PYTHIA[key], strict=True))
        return transformers.GPTNeoXConfig(**sizes, tie_word_embeddings=False, attention_bias=True)
    if key in GPT2:
        layers, hidden, heads = GPT2[key]
        return transformers.GPT2Config(n_layer=layers, n_embd=hidden, n_head=heads, vocab_size=50257)
    family, sizes_of, more = CONFIGS[key]
    kind = getattr(transformers, f"{family}Config")
    return kind(**dict(zip(GATED, sizes_of, strict=True)), **more, pad_token_id=None)


def unnamed(shape: ModelShape) -> ModelShape:
    return dataclasses.replace(shape, id="", name="")


@pytest.mark.parametrize("key", KNOWN)
def test_known_counts(key: str) -> None:
    params, kv_bytes, read_gb = KNOWN[key]
    shape = SHAPES[key]
    assert shape.params == params
    assert shape.kv_values * 2 == kv_bytes
    assert shape.params_read * 2 / 1e9 == pytest.approx(read_gb, abs=5.01e-4)


def test_every_shape_is_checked_against_transformers() -> None:
    assert set(SHAPES) == {*HAND_WRITTEN, "embedded-drafter"}


@pytest.mark.parametrize("key", HAND_WRITTEN)
def test_transformers_builds_as_many_parameters(key: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config_of(key))
    assert sum(weight.numel() for weight in model.parameters()) == SHAPES[key].params


@pytest.mark.parametrize("key", HAND_WRITTEN)
def test_a_configuration_gives_the_shape(key: str) -> None:
    assert unnamed(from_config(config_of(key))) == unnamed(SHAPES[key])


class Plain:
    """Attributes, and nothing else of a configuration."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}


def test_any_object_with_the_attributes_will_do() -> None:
    assert unnamed(from_config(Plain(**LLAMA))) == unnamed(SHAPES["llama-3.1-8b"])
    assert from_config(Plain(**LLAMA), name="mine").name == "mine"


def test_the_text_part_of_a_larger_model_counts_and_the_whole_says_whether_it_is_tied() -> None:
    part = Plain(**{**LLAMA, "tie_word_embeddings": True})
    whole = Plain(text_config=part, tie_word_embeddings=False, model_type="vision")
    assert unnamed(from_config(whole)) == unnamed(SHAPES["llama-3.1-8b"])


def test_a_counted_model_has_the_parameters_that_were_counted() -> None:
    for params in (8_000_000_000, 8_030_261_248, 8_123_456_789):
        assert from_config(Plain(**{**LLAMA, "model_type": "new"}), params=params).params == params


def test_a_configuration_without_a_size_is_refused() -> None:
    with pytest.raises(ValueError, match="the configuration of llama lacks hidden_size"):
        from_config(Plain(**{**LLAMA, "hidden_size": None}))


def test_windows_are_counted_by_layer() -> None:
    assert (SHAPES["gemma-2-9b"].window, SHAPES["gemma-2-9b"].windowed_layers) == (4096, 21)
    assert (SHAPES["gemma-3-1b"].window, SHAPES["gemma-3-1b"].windowed_layers) == (512, 22)
    mistral = from_config(Plain(**LLAMA, sliding_window=4096))
    assert (mistral.window, mistral.windowed_layers) == (4096, 32)
    off = from_config(Plain(**LLAMA, sliding_window=4096, use_sliding_window=False))
    assert (off.window, off.windowed_layers) == (None, 0)


def test_a_tied_table_is_read_as_the_head_and_an_untied_one_is_looked_up() -> None:
    tied, untied = SHAPES["llama-3.2-1b"], SHAPES["llama-3.1-8b"]
    assert tied.params_read == tied.params
    assert untied.params - untied.params_read == 128256 * 4096


def test_heads_need_not_divide_the_width() -> None:
    assert SHAPES["qwen3-4b"].heads * SHAPES["qwen3-4b"].head_dim == 4096 != SHAPES["qwen3-4b"].hidden


def test_a_mixture_has_few_active_parameters() -> None:
    mixture = SHAPES["qwen3-30b-a3b"]
    assert mixture.params == 30_532_122_624
    assert mixture.params_active == 3_353_032_704
    assert mixture.params_read == mixture.params_active - 151936 * 2048


@pytest.mark.parametrize(("tokens", "touched"), [(1, 8.0), (2, 15.5), (5, 35.3), (9, 56.4), (17, 85.3)])
def test_a_wider_read_touches_more_experts(tokens: int, touched: float) -> None:
    assert SHAPES["qwen3-30b-a3b"].experts_touched(tokens) == pytest.approx(touched, abs=0.051)
    assert SHAPES["llama-3.1-8b"].experts_touched(tokens) == 0.0


def test_the_embedded_drafter_reads_two_layers_a_norm_and_its_head() -> None:
    layer = 576 * 576 * 2 + 576 * 192 * 2 + 3 * 576 * 1536 + 2 * 576
    assert SHAPES["embedded-drafter"].params == 2 * layer + 576 + 8192 * 576
    assert SHAPES["embedded-drafter"].params_read == SHAPES["embedded-drafter"].params
    assert SHAPES["embedded-drafter"].kv_values == 2 * 3 * 64 * 2
    assert embedded_drafter(SHAPES["smollm2-360m"], 1, 100).head_params == 100 * 960


def test_the_embedded_drafter_has_the_parameters_of_its_file() -> None:
    """The file holds all but the head, which is cut from the target's table."""
    from safetensors import safe_open

    with safe_open(ROOT / "assets" / "drafter" / "model.safetensors", "pt") as file:
        sizes = {name: math.prod(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    kept = sizes.pop("kept_ids")
    shape = embedded_drafter(SHAPES["smollm2-135m"], head_rows=kept)
    assert shape == SHAPES["embedded-drafter"]
    assert sum(sizes.values()) == shape.params - shape.head_params


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"layers": 0}, "layers must be at least 1, got 0"),
        ({"other_params": -1}, "other_params must be at least 0, got -1"),
        ({"input_rows": 7}, "a tied table has 49152 rows as its head, got 7"),
        ({"windowed_layers": 31}, r"windowed_layers must be in 0\.\.30, got 31"),
        ({"windowed_layers": 3}, "window must be at least 1 where layers have one, got None"),
        ({"experts_per_token": 1}, r"experts_per_token must be in 0\.\.0, got 1"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SHAPES["smollm2-135m"], **wrong)


def test_pairs_to_price_name_shapes_and_the_default_comes_first() -> None:
    first = next(iter(PRICED_PAIRS.values()))
    assert first.name == "Llama-3.1-8B + Llama-3.2-1B"
    assert all(pair.drafter.params < pair.target.params for pair in PRICED_PAIRS.values())
    assert {pair.devices for pair in PRICED_PAIRS.values() if pair.target.id == "llama-3.1-70b"} == {2}
