"""Model shapes: what a pass must read and multiply, as data and from any transformers configuration.

Parameters are unique ones: a matrix that serves as input table *and* as head (tied) is one matrix. A pass looks up a
few rows of an input table of its own (untied); it does not read the table. The head is read once a pass, however many
rows the pass has. GPT-2's table of positions is counted as read (under 1 % of the model).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of a decoder.

    Attributes:
        id: its name in links and lists.
        name: its name for people.
        layers: number of layers.
        hidden: width of the residual stream.
        heads: query heads.
        kv_heads: heads of keys and values (fewer than ``heads`` under grouped-query attention).
        head_dim: width of a head; need not be hidden / heads.
        head_rows: rows of the head: ids that the model can say.
        input_rows: rows of the input table; 0 where the table belongs to another model.
        tied: the input table *is* the head.
        layer_params: parameters of one layer, without its experts.
        other_params: everything outside layers, head and input table.
        window: tokens that a sliding-window layer looks back on.
        windowed_layers: how many of the layers have that window.
        expert_params: parameters of one expert of one layer.
        experts: experts a layer; 0 for a dense model.
        experts_per_token: how many of them a token is sent through.

    Raises:
        ValueError: a size is not positive, or the windows or experts do not fit together.
    """

    id: str
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    head_rows: int
    input_rows: int
    tied: bool
    layer_params: int
    other_params: int
    window: int | None = None
    windowed_layers: int = 0
    expert_params: int = 0
    experts: int = 0
    experts_per_token: int = 0

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "head_rows", "layer_params"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("input_rows", "other_params", "expert_params", "experts", "experts_per_token"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.tied and self.input_rows != self.head_rows:
            raise ValueError(f"a tied table has {self.head_rows} rows as its head, got {self.input_rows}")
        if not 0 <= self.windowed_layers <= self.layers:
            raise ValueError(f"windowed_layers must be in 0..{self.layers}, got {self.windowed_layers}")
        if self.windowed_layers and (self.window is None or self.window < 1):
            raise ValueError(f"window must be at least 1 where layers have one, got {self.window}")
        if self.experts_per_token > self.experts:
            raise ValueError(f"experts_per_token must be in 0..{self.experts}, got {self.experts_per_token}")

    @property
    def params(self) -> int:
        """All unique parameters: what is stored."""
        return self.table_params + self._body(self.experts)

    @property
    def params_read(self) -> int:
        """Parameters that a pass over one token reads, which are those it multiplies with."""
        return self.head_params + self._body(self.experts_per_token)

    @property
    def params_active(self) -> int:
        """Parameters that serve one token, an input table of its own included: a mixture's "active" count."""
        return self.table_params + self._body(self.experts_per_token)

    @property
    def head_params(self) -> int:
        """Parameters of the head."""
        return self.head_rows * self.hidden

    @property
    def table_params(self) -> int:
        """Parameters of head and input table, one matrix where they are tied."""
        return self.head_params + (0 if self.tied else self.input_rows * self.hidden)

    @property
    def kv_values(self) -> int:
        """Numbers that a token leaves in the cache, all layers: layers x kv heads x head_dim x 2."""
        return self.layers * self.kv_heads * self.head_dim * 2

    def body_read(self, tokens: int) -> float:
        """Parameters outside head and input table that a pass over ``tokens`` tokens in all reads."""
        return self._body(self.experts_touched(tokens))

    def experts_touched(self, tokens: int) -> float:
        """Distinct experts of a layer that ``tokens`` tokens are expected to need: E (1 - (1 - k/E)^n).

        Assumes that every token's experts are chosen independently and evenly, which trained routers only approach.
        """
        if not self.experts:
            return 0.0
        return self.experts * (1.0 - (1.0 - self.experts_per_token / self.experts) ** tokens)

    def _body(self, experts: Number) -> Number:
        return self.layers * (self.layer_params + experts * self.expert_params) + self.other_params


# --- counting ---------------------------------------------------------------------------------------------------------


def _gated(
    id: str,
    name: str,
    layers: int,
    hidden: int,
    inner: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    vocab: int,
    *,
    tied: bool,
    qkv_bias: bool = False,
    output_bias: bool = False,
    mlp_bias: bool = False,
    qk_norm: bool = False,
    norms: int = 2,
    window: int | None = None,
    windowed_layers: int = 0,
    experts: int = 0,
    experts_per_token: int = 0,
) -> ModelShape:
    """Llama and its kin: rotary positions, RMS norms, a gated feed-forward of three matrices, or experts of such."""
    queries, keys = heads * head_dim, kv_heads * head_dim
    attention = hidden * (2 * queries + 2 * keys)
    attention += (queries + 2 * keys) * qkv_bias + hidden * output_bias + 2 * head_dim * qk_norm
    feed_forward = 3 * hidden * inner + (2 * inner + hidden) * mlp_bias
    router = hidden * experts
    return ModelShape(
        id,
        name,
        layers,
        hidden,
        heads,
        kv_heads,
        head_dim,
        head_rows=vocab,
        input_rows=vocab,
        tied=tied,
        layer_params=attention + norms * hidden + (router if experts else feed_forward),
        other_params=hidden,
        window=window,
        windowed_layers=windowed_layers,
        expert_params=feed_forward if experts else 0,
        experts=experts,
        experts_per_token=experts_per_token,
    )


def _plain(
    id: str,
    name: str,
    layers: int,
    hidden: int,
    inner: int,
    heads: int,
    vocab: int,
    *,
    tied: bool,
    positions: int = 0,
) -> ModelShape:
    """GPT-2, GPT-NeoX: biases everywhere, layer norms with biases, two matrices; ``positions`` rows of positions."""
    attention = 4 * hidden * hidden + 4 * hidden
    feed_forward = 2 * hidden * inner + inner + hidden
    return ModelShape(
        id,
        name,
        layers,
        hidden,
        heads,
        heads,
        hidden // heads,
        head_rows=vocab,
        input_rows=vocab,
        tied=tied,
        layer_params=attention + feed_forward + 4 * hidden,
        other_params=2 * hidden + positions * hidden,
    )


# --- from a configuration ---------------------------------------------------------------------------------------------

EXACT = ("llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "gpt2", "gpt_neox")
"""Kinds of model whose parameters :func:`from_config` counts exactly."""


def from_config(config: Any, name: str | None = None, params: int | None = None) -> ModelShape:
    """The shape of a transformers configuration, or of any object with its attributes; nothing is imported.

    A kind of model that is not in :data:`EXACT` is counted as a Llama of its sizes; where the model is at hand, give
    ``params``, its number of unique parameters, and the count is right.

    Args:
        config: a configuration of a decoder, or of a model that holds one as ``text_config``.
        name: for people; default the configuration's own name.
        params: all unique parameters.

    Raises:
        ValueError: the configuration lacks a size.
    """
    whole, config = config, getattr(config, "text_config", None) or config
    kind = getattr(config, "model_type", "")
    # The whole model decides whether its table is tied; the part may carry a default.
    tied = bool(getattr(whole, "tie_word_embeddings", getattr(config, "tie_word_embeddings", True)))
    name = name or getattr(whole, "_name_or_path", "") or kind or "model"
    layers, hidden = _size(config, "num_hidden_layers", "n_layer"), _size(config, "hidden_size", "n_embd")
    heads, vocab = _size(config, "num_attention_heads", "n_head"), _size(config, "vocab_size")
    if kind in ("gpt2", "gpt_neox"):
        inner = getattr(config, "n_inner", None) or getattr(config, "intermediate_size", None) or 4 * hidden
        positions = _size(config, "n_positions", "max_position_embeddings") if kind == "gpt2" else 0
        shape = _plain(name, name, layers, hidden, inner, heads, vocab, tied=tied, positions=positions)
    else:
        experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None) or 0
        inner = getattr(config, "moe_intermediate_size", None) if experts else None
        attention_bias = bool(getattr(config, "attention_bias", False))
        window, windowed_layers = _windows(config, layers)
        shape = _gated(
            name,
            name,
            layers,
            hidden,
            inner or _size(config, "intermediate_size"),
            heads,
            getattr(config, "num_key_value_heads", None) or heads,
            getattr(config, "head_dim", None) or hidden // heads,
            vocab,
            tied=tied,
            qkv_bias=attention_bias or kind == "qwen2",
            output_bias=attention_bias,
            mlp_bias=bool(getattr(config, "mlp_bias", False)),
            qk_norm=kind.startswith("qwen3") or kind == "gemma3_text",
            norms=4 if kind in ("gemma2", "gemma3_text") else 2,
            window=window,
            windowed_layers=windowed_layers,
            experts=experts,
            experts_per_token=_size(config, "num_experts_per_tok") if experts else 0,
        )
    return shape if params is None else _with_params(shape, params)


def _size(config: Any, *names: str) -> int:
    for name in names:
        value = getattr(config, name, None)
        if isinstance(value, int):
            return value
    raise ValueError(f"the configuration of {getattr(config, 'model_type', '') or 'the model'} lacks {names[0]}")


def _windows(config: Any, layers: int) -> tuple[int | None, int]:
    """The window of the sliding layers, and how many there are."""
    window = getattr(config, "sliding_window", None)
    if not window or getattr(config, "use_sliding_window", True) is False:
        return None, 0
    kinds = getattr(config, "layer_types", None)
    windowed = layers if kinds is None else sum(kind == "sliding_attention" for kind in kinds)
    return (window, windowed) if windowed else (None, 0)


def _with_params(shape: ModelShape, params: int) -> ModelShape:
    """The shape with all its parameters counted elsewhere: what the formula missed is spread over the layers."""
    each, rest = divmod(params - shape.params, shape.layers)
    return replace(shape, layer_params=shape.layer_params + each, other_params=shape.other_params + rest)


# --- shapes -----------------------------------------------------------------------------------------------------------


def _gemma3(id: str, name: str, layers: int, *sizes: int, window: int) -> ModelShape:
    """Every sixth layer sees everything, the others a window."""
    windowed = layers - layers // 6
    return _gated(id, name, layers, *sizes, tied=True, qk_norm=True, norms=4, window=window, windowed_layers=windowed)


def _gemma2(id: str, name: str, layers: int, *sizes: int) -> ModelShape:
    """Every second layer sees everything, the others a window."""
    return _gated(id, name, layers, *sizes, tied=True, norms=4, window=4096, windowed_layers=(layers + 1) // 2)


def _qwen3(
    id: str,
    name: str,
    layers: int,
    hidden: int,
    inner: int,
    heads: int,
    kv_heads: int,
    *,
    tied: bool,
    experts: int = 0,
    experts_per_token: int = 0,
) -> ModelShape:
    return _gated(
        id,
        name,
        layers,
        hidden,
        inner,
        heads,
        kv_heads,
        head_dim=128,
        vocab=151936,
        tied=tied,
        qk_norm=True,
        experts=experts,
        experts_per_token=experts_per_token,
    )


def _pythia(id: str, name: str, *sizes: int) -> ModelShape:
    return _plain(id, name, *sizes, tied=False)


def _gpt2(id: str, layers: int, hidden: int, heads: int) -> ModelShape:
    return _plain(id, id, layers, hidden, 4 * hidden, heads, 50257, tied=True, positions=1024)


def _llama(id: str, name: str, *sizes: int, tied: bool) -> ModelShape:
    return _gated(id, name, *sizes, tied=tied)


def _qwen25(id: str, name: str, *sizes: int, tied: bool) -> ModelShape:
    return _gated(id, name, *sizes, tied=tied, qkv_bias=True)


def embedded_drafter(target: ModelShape, layers: int = 2, head_rows: int = 8192) -> ModelShape:
    """The embedded drafter: a few of the target's layers with some rows of its table as head.

    Its input table is the target's, so its input rows are look-ups and nothing of the table is stored twice but the
    head's rows.
    """
    return replace(
        target,
        id="embedded-drafter",
        name=f"{layers}-layer drafter",
        layers=layers,
        windowed_layers=min(layers, target.windowed_layers),
        head_rows=head_rows,
        input_rows=0,
        tied=False,
    )


_EMBEDDED_TARGET = _llama("smollm2-135m", "SmolLM2-135M", 30, 576, 1536, 9, 3, 64, 49152, tied=True)

SHAPES: dict[str, ModelShape] = {
    shape.id: shape
    for shape in (
        _EMBEDDED_TARGET,
        embedded_drafter(_EMBEDDED_TARGET),
        _llama("smollm2-360m", "SmolLM2-360M", 32, 960, 2560, 15, 5, 64, 49152, tied=True),
        _llama("smollm2-1.7b", "SmolLM2-1.7B", 24, 2048, 8192, 32, 32, 64, 49152, tied=True),
        _llama("llama-3.2-1b", "Llama-3.2-1B", 16, 2048, 8192, 32, 8, 64, 128256, tied=True),
        _llama("llama-3.2-3b", "Llama-3.2-3B", 28, 3072, 8192, 24, 8, 128, 128256, tied=True),
        _llama("llama-3.1-8b", "Llama-3.1-8B", 32, 4096, 14336, 32, 8, 128, 128256, tied=False),
        _llama("llama-3.1-70b", "Llama-3.1-70B", 80, 8192, 28672, 64, 8, 128, 128256, tied=False),
        _llama("llama-2-7b", "Llama-2-7B", 32, 4096, 11008, 32, 32, 128, 32000, tied=False),
        _llama("tinyllama-1.1b", "TinyLlama-1.1B", 22, 2048, 5632, 32, 4, 64, 32000, tied=False),
        _qwen3("qwen3-0.6b", "Qwen3-0.6B", 28, 1024, 3072, 16, 8, tied=True),
        _qwen3("qwen3-1.7b", "Qwen3-1.7B", 28, 2048, 6144, 16, 8, tied=True),
        _qwen3("qwen3-4b", "Qwen3-4B", 36, 2560, 9728, 32, 8, tied=True),
        _qwen3("qwen3-8b", "Qwen3-8B", 36, 4096, 12288, 32, 8, tied=False),
        _qwen3("qwen3-14b", "Qwen3-14B", 40, 5120, 17408, 40, 8, tied=False),
        _qwen3("qwen3-32b", "Qwen3-32B", 64, 5120, 25600, 64, 8, tied=False),
        _qwen3("qwen3-30b-a3b", "Qwen3-30B-A3B", 48, 2048, 768, 32, 4, tied=False, experts=128, experts_per_token=8),
        _qwen25("qwen2.5-0.5b", "Qwen2.5-0.5B", 24, 896, 4864, 14, 2, 64, 151936, tied=True),
        _qwen25("qwen2.5-1.5b", "Qwen2.5-1.5B", 28, 1536, 8960, 12, 2, 128, 151936, tied=True),
        _qwen25("qwen2.5-3b", "Qwen2.5-3B", 36, 2048, 11008, 16, 2, 128, 151936, tied=True),
        _qwen25("qwen2.5-7b", "Qwen2.5-7B", 28, 3584, 18944, 28, 4, 128, 152064, tied=False),
        _qwen25("qwen2.5-14b", "Qwen2.5-14B", 48, 5120, 13824, 40, 8, 128, 152064, tied=False),
        _qwen25("qwen2.5-32b", "Qwen2.5-32B", 64, 5120, 27648, 40, 8, 128, 152064, tied=False),
        _qwen25("qwen2.5-72b", "Qwen2.5-72B", 80, 8192, 29568, 64, 8, 128, 152064, tied=False),
        _gemma2("gemma-2-2b", "Gemma-2-2B", 26, 2304, 9216, 8, 4, 256, 256000),
        _gemma2("gemma-2-9b", "Gemma-2-9B", 42, 3584, 14336, 16, 8, 256, 256000),
        _gemma2("gemma-2-27b", "Gemma-2-27B", 46, 4608, 36864, 32, 16, 128, 256000),
        _gemma3("gemma-3-270m", "Gemma-3-270M", 18, 640, 2048, 4, 1, 256, 262144, window=512),
        _gemma3("gemma-3-1b", "Gemma-3-1B", 26, 1152, 6912, 4, 1, 256, 262144, window=512),
        _gemma3("gemma-3-4b", "Gemma-3-4B (text)", 34, 2560, 10240, 8, 4, 256, 262208, window=1024),
        _gemma3("gemma-3-12b", "Gemma-3-12B (text)", 48, 3840, 15360, 16, 8, 256, 262208, window=1024),
        _gemma3("gemma-3-27b", "Gemma-3-27B (text)", 62, 5376, 21504, 32, 16, 128, 262208, window=1024),
        _pythia("pythia-70m", "Pythia-70M", 6, 512, 2048, 8, 50304),
        _pythia("pythia-160m", "Pythia-160M", 12, 768, 3072, 12, 50304),
        _pythia("pythia-410m", "Pythia-410M", 24, 1024, 4096, 16, 50304),
        _pythia("pythia-1b", "Pythia-1B", 16, 2048, 8192, 8, 50304),
        _pythia("pythia-1.4b", "Pythia-1.4B", 24, 2048, 8192, 16, 50304),
        _pythia("pythia-2.8b", "Pythia-2.8B", 32, 2560, 10240, 32, 50304),
        _pythia("pythia-6.9b", "Pythia-6.9B", 32, 4096, 16384, 32, 50432),
        _pythia("pythia-12b", "Pythia-12B", 36, 5120, 20480, 40, 50688),
        _gpt2("distilgpt2", 6, 768, 12),
        _gpt2("gpt2", 12, 768, 12),
        _gpt2("gpt2-medium", 24, 1024, 16),
        _gpt2("gpt2-large", 36, 1280, 20),
        _gpt2("gpt2-xl", 48, 1600, 25),
    )
}
"""By id. The tables of padded vocabularies are as long as they are stored."""


@dataclass(frozen=True, slots=True)
class PricedPair:
    """A target and a drafter to price, and how many devices the target is spread over."""

    id: str
    target: ModelShape
    drafter: ModelShape
    devices: int = 1

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.target.name} + {self.drafter.name}"


def _pair(target: str, drafter: str, devices: int = 1) -> PricedPair:
    return PricedPair(f"{target}+{drafter}", SHAPES[target], SHAPES[drafter], devices)


PRICED_PAIRS: dict[str, PricedPair] = {
    pair.id: pair
    for pair in (
        _pair("llama-3.1-8b", "llama-3.2-1b"),
        _pair("smollm2-135m", "embedded-drafter"),
        _pair("qwen3-8b", "qwen3-0.6b"),
        _pair("qwen2.5-7b", "qwen2.5-0.5b"),
        _pair("gemma-2-9b", "gemma-2-2b"),
        _pair("smollm2-1.7b", "smollm2-135m"),
        _pair("llama-3.1-70b", "llama-3.1-8b", devices=2),
        _pair("llama-3.1-70b", "llama-3.2-1b", devices=2),
        _pair("pythia-6.9b", "pythia-70m"),
        _pair("gpt2-xl", "distilgpt2"),
    )
}
"""Pairs that share a vocabulary, by id; the default first."""
