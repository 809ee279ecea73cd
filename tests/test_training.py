from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from specviz.models.language_model import LanguageModel
from specviz.models.tokenizer import Tokenizer
from specviz.training import corpus, evaluate, prompts
from specviz.training.distill import Distance, Recipe, batches, new_student, rate, train, tv_share
from specviz.training.teacher import Teacher, cache_teacher
from tests import tiny_models

STOP = 0
KEPT = torch.arange(0, 200)


@pytest.fixture(scope="module")
def target() -> torch.nn.Module:
    return tiny_models.network("llama", num_hidden_layers=3)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(tiny_models.tokenizer(), "tiny")


@pytest.fixture(scope="module")
def files(target: torch.nn.Module, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BATCH", 4)
        patch.setattr(corpus, "LONGEST", 12)
        return corpus.sample_corpus(target, tokenizer, STOP, 150, 0, tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def teacher(target: torch.nn.Module, files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Teacher:
    return Teacher(cache_teacher(target, files, tmp_path_factory.mktemp("teacher")))


def fresh(target: torch.nn.Module) -> torch.nn.Module:
    return new_student(target, KEPT, (0, 2))


@pytest.mark.parametrize("tv_weight", [0.0, 0.3, 1.0])
def test_the_hand_made_gradient_is_autograds(tv_weight: float) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(5, 9, generator=generator, requires_grad=True)
    law = torch.softmax(torch.randn(5, 9, generator=generator), -1) * torch.rand(5, 1, generator=generator)
    Distance.apply(logits, law, tv_weight).backward()
    by_hand = logits.grad.clone()
    logits.grad = None
    log_q = torch.log_softmax(logits, -1)
    kl = -(law * log_q).sum(-1).mean()
    tv = (1 - torch.minimum(law, log_q.exp()).sum(-1)).mean()
    loss = (1 - tv_weight) * kl + tv_weight * tv
    loss.backward()
    torch.testing.assert_close(by_hand, logits.grad, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(Distance.apply(logits, law, tv_weight), loss)


def test_the_cached_law_is_the_targets_softmax(target: torch.nn.Module, files: list[Path], teacher: Teacher) -> None:
    texts = [text for file in files for text in corpus.read_texts(file)]
    assert len(texts) == len(teacher)
    assert teacher.tokens == sum(len(ids) - given for ids, given in texts)
    ids, mask, hidden, log_z = teacher.batch([0, 5])
    head = target.get_output_embeddings().weight
    laws = (hidden.float() @ head.T - log_z[:, None]).exp()
    with torch.inference_mode():
        wanted = torch.softmax(target(input_ids=ids).logits, -1)[mask]
    assert laws.shape == wanted.shape

    def distance(one: torch.Tensor, other: torch.Tensor) -> float:
        return float((one - other).abs().sum(-1).mean() / 2)

    # States and reads are in bf16, which moves the sharp laws of this model a little; the neighbour's law is far off.
    assert distance(laws, wanted) < 0.06
    assert distance(laws[1:], wanted[:-1]) > 0.3
    assert mask.sum() == sum(len(texts[i][0]) - texts[i][1] for i in (0, 5))


def test_a_corpus_is_a_function_of_its_seed_and_goes_on_where_it_stopped(
    target: torch.nn.Module, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "BATCH", 3)
    monkeypatch.setattr(corpus, "LONGEST", 6)

    def sample(tokens: int, seed: int, folder: str) -> str:
        return corpus.fingerprint(corpus.sample_corpus(target, tokenizer, STOP, tokens, seed, tmp_path / folder))

    whole = sample(40, 7, "whole")
    sample(20, 7, "parts")
    assert sample(40, 7, "parts") == whole
    assert sample(40, 8, "other") != whole


def test_padding_changes_no_greedy_answer(target: torch.nn.Module, tokenizer: Tokenizer) -> None:
    texts = [tokenizer.encode(text) for text in ("a", "the cat sat on the mat")]
    ones = torch.ones(2)
    together = corpus.sample_texts(target, texts, ones, 8, STOP, None)
    alone = [corpus.sample_texts(target, [text], ones[:1], 8, STOP, None)[0] for text in texts]
    assert together == alone


def test_every_epoch_visits_every_text_once(teacher: Teacher) -> None:
    count = len(teacher)
    epoch = -(-count // 3)
    order = list(islice(batches(teacher, 3, seed=1), 2 * epoch))
    for visits in (order[:epoch], order[epoch:]):
        assert sorted(index for group in visits for index in group) == list(range(count))
    assert order[:epoch] != order[epoch:]
    assert order == list(islice(batches(teacher, 3, seed=1), 2 * epoch))


def test_the_schedule_warms_up_falls_to_zero_and_leans_over_to_tv() -> None:
    recipe = Recipe(steps=1000, warmup=10, learning_rate=1.0, tv_from=0.5, tv_weight=0.8)
    rates = [rate(recipe, step) for step in range(1001)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[1000] == 0
    assert tv_share(recipe, 0) == tv_share(recipe, 500) == 0
    assert tv_share(recipe, 550) == pytest.approx(0.4)
    assert tv_share(recipe, 999) == 0.8


def test_an_interrupted_training_ends_with_the_same_weights(
    target: torch.nn.Module, teacher: Teacher, tmp_path: Path
) -> None:
    recipe = Recipe(steps=12, warmup=2, sequences=2, tv_from=0.5)
    whole, parts = fresh(target), fresh(target)
    assert train(whole, teacher, recipe, tmp_path / "whole") == 12
    done = train(parts, teacher, recipe, tmp_path / "parts", minutes=1e-9)
    assert done == 1
    again = fresh(target)
    assert train(again, teacher, recipe, tmp_path / "parts") == 12
    for one, other in zip(whole.body.parameters(), again.body.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(ValueError, match="another recipe"):
        train(fresh(target), teacher, Recipe(steps=13), tmp_path / "parts")


def test_training_brings_the_student_nearer_and_leaves_the_targets_table_alone(
    target: torch.nn.Module, teacher: Teacher, tmp_path: Path
) -> None:
    table = target.get_input_embeddings().weight.clone()
    student = fresh(target)
    train(student, teacher, Recipe(steps=60, warmup=5, sequences=4, learning_rate=3e-3), tmp_path / "run")
    ids, mask, hidden, log_z = teacher.batch(range(len(teacher)))
    law = (hidden.float() @ student.head.T - log_z[:, None]).exp()

    def alpha(network: torch.nn.Module) -> float:
        with torch.inference_mode():
            q = torch.softmax(network(input_ids=ids).logits, -1)[mask]
        return float(torch.minimum(q, law).sum(-1).mean())

    assert alpha(student) > alpha(fresh(target)) + 0.01
    assert torch.equal(table, target.get_input_embeddings().weight)
    student.save(tmp_path / "out")
    saved = load_file(tmp_path / "out" / "model.safetensors")
    assert all(weight.dtype in (torch.bfloat16, torch.int32) for weight in saved.values())
    assert not any("embed_tokens" in name for name in saved)


def test_the_target_as_its_own_drafter_scores_one(
    target: torch.nn.Module, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "HELD_OUT", {"chat": ("the cat",), "list": ("a dog", "one two")})

    def reader() -> LanguageModel:
        return LanguageModel(target, vocab_size=320, real_ids=320)

    scores = evaluate.score(target, reader(), reader(), tokenizer, STOP, length=6)
    assert list(scores) == ["chat", "list", "all"]
    assert all(score.alpha == pytest.approx(1) and score.agreement == 1 for score in scores.values())
    assert scores["all"].positions == scores["chat"].positions + scores["list"].positions


def test_no_held_out_prompt_is_made_by_a_pattern() -> None:
    assert {kind: len(several) for kind, several in prompts.HELD_OUT.items()} == dict.fromkeys(prompts.HELD_OUT, 8)
    assert len(prompts.HELD_OUT) == 5
    made = {pattern.format(topic) for pattern in prompts.PATTERNS + prompts.BEGINNINGS for topic in prompts.TOPICS}
    assert not made.intersection(prompt for several in prompts.HELD_OUT.values() for prompt in several)


def test_corpus_prompts_repeat_with_the_seed() -> None:
    first = list(islice(prompts.corpus_prompts(3), 50))
    assert first == list(islice(prompts.corpus_prompts(3), 50))
    assert first != list(islice(prompts.corpus_prompts(4), 50))
    assert {prompt.chat for prompt in first} == {True, False}
    assert {prompt.temperature for prompt in first} <= set(prompts.TEMPERATURES)


def test_a_fingerprint_does_not_depend_on_how_the_texts_are_split(files: list[Path], tmp_path: Path) -> None:
    joined = tmp_path / "joined.jsonl.gz"
    joined.write_bytes(b"".join(file.read_bytes() for file in files))
    assert corpus.fingerprint([joined]) == corpus.fingerprint(files)
