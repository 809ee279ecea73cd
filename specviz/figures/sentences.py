"""What happened, in one sentence an event.

All wording is in :data:`TEMPLATES`, and the plainer wording of *Story* in :data:`STORY`. ``[…]`` marks the words to be
set strong. A sentence is a tuple of spans ``(text, kind)``: plain text, which a view writes without interpreting it.
The kind names how it is set: "" plain, "strong", "token" for a token's text, or both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter
from typing import Any

from specviz.figures import numbers
from specviz.figures.events import Event, closed, judges_at_once
from specviz.figures.text import Texts
from specviz.trace import Draft, Round

Spans = tuple[tuple[str, str], ...]
TOKEN_FIELDS = frozenset({"draft", "drafts", "closing", "target", "gone"})
"""Fields of a template that hold a token's text."""
ROUNDING = 1e-4
"""Below this p and q of a target that drafts for itself differ by its arithmetic alone: it reads in other widths."""

TEMPLATES = {
    "draft": "The drafter guesses [{draft}], which it gave a chance of {q}. The target has not been asked yet.",
    "draft.choice": "The drafter guesses [{draft}], its own first choice. The target has not been asked yet.",
    "draft.copy": "[{draft}] is copied from the text: it followed the same words before, so q = 1. "
    "The target has not been asked yet.",
    "draft.unknown": "The drafter guesses [{draft}]. The target has not been asked yet.",
    "draft.all": "The drafter guesses [{drafts}]. The target has not been asked yet.",
    "draft.all.copy": "[{drafts}]: copied from the text, where it followed the same words before. "
    "The target has not been asked yet.",
    "short.budget": " Only {drafts_left}: {left} left.",
    "short.context": " Only {drafts_left}: the context is nearly full.",
    "short.unsure": " Only {drafts_left}: the drafter was not sure enough of the next.",
    "short.copy": " Only {drafts_left}: there the text so far ends.",
    "read": "[One read of the target, {answers} answers:] what it wants at the place of {each}, and one place further.",
    # Speculative sampling: a coin.
    "coin.sure": "[{draft} stays for sure:] the target gives it {p}, more than the drafter’s {q}. No coin needed.",
    "coin.equal": "[{draft} stays for sure:] the target gives it {p}, just as much as the drafter. No coin needed.",
    "coin.same": "[{draft} stays for sure:] the two models are identical here, p = q: always kept, no gap to refill.",
    "coin.self": "[{draft} stays:] the target drafts for itself: p = q, always kept.",
    "coin.kept": "[{draft} stays:] the target wanted {p}, {offer}, so a draft like this stays {times}. "
    "The coin fell at {coin}, inside the {chance} that stays.",
    "coin.rejected": "[{draft} goes:] the target wanted {p}, {offer}, so a draft like this stays {times}. "
    "The coin fell at {coin}, outside the {chance} that stays.",
    "coin.never": "[{draft} goes:] {why}, p = 0. No coin could save it.",
    "offer": "the drafter offered {q}",
    "offer.copy": "a copy claims all of it (q = 1)",
    "disjoint": " Shared 0.00: every draft dies here.",
    "why.greedy": "at temperature 0 the target wants its first choice and nothing else",
    "why.truncated": "the target’s {cut} rules it out",
    "why.zero": "the target gives it no chance at all",
    # The target chooses for itself: greedy, Gumbel coupling, token match.
    "greedy.kept": "[{draft} stays:] it is the target’s first choice too.",
    "greedy.rejected": "[{draft} goes:] the target’s first choice is [{target}]{lead}.",
    "greedy.lead": ", {lead} ahead of its second (in logits)",
    "gumbel_coupling.kept": "[{draft} stays:] both models pick with the same noise, and the target picked it too. "
    "A draft like this stays {times}.",
    "gumbel_coupling.rejected": "[{draft} goes:] both models pick with the same noise, but the target picked "
    "[{target}]. A draft like this stays {times}.",
    "token_match.kept": "[{draft} stays:] the target drew for itself, and drew the same token. "
    "A draft like this stays {times}.",
    "token_match.rejected": "[{draft} goes:] the target drew for itself, and drew [{target}]. "
    "A draft like this stays {times}.",
    "unknown.kept": "[{draft} stays.] With what chance, this record does not say.",
    "unknown.rejected": "[{draft} goes.] With what chance, this record does not say.",
    # Block verification: all coins at once.
    "block.none": "[None stays:] no coin fell inside its bar.",
    "block.one": "[It stays:] {carrier}.",
    "block.some": "[{Kept} of {drafted} {stay}:] {carrier}{carries}.",
    "block.all": "[{All} stay:] {carrier}{carries}.",
    "carrier": "the last coin inside its bar is at place {place}",
    "carrier.only": "its coin fell inside its bar",
    "carrier.sure": "the last place inside its bar is {place}, whose bar is full, so no coin is needed",
    "carrier.only.sure": "its bar is full, so no coin is needed",
    "carrier.unknown": "with what chance, this record does not say",
    "carries": "; it carries every draft before it",
    "ends": " {draft} ends the text.",
    # The closing token.
    "correction.coin": "[{closing} replaces {draft}:] drawn from the gaps, "
    "which is what the target wants more than the drafter offered.",
    "correction.same": "[{closing} replaces {draft}:] both models say the same here, "
    "so it is drawn from what the target wants.",
    "correction.copy": "[{closing} replaces {draft}:] drawn from what the target wants, the copied token left out.",
    "correction.greedy": "[{closing} replaces {draft}:] it is the target’s first choice.",
    "correction.gumbel_coupling": "[{closing} replaces {draft}:] it is what the target picked with the same noise.",
    "correction.token_match": "[{closing} replaces {draft}:] it is what the target drew for itself.",
    "correction.block": "[{closing} replaces {draft}:] drawn from what the target still wants, "
    "the chances of the block before it weighed in.",
    "correction.unknown": "[{closing} replaces {draft}.]",
    "bonus": "[{stayed} stayed:] the same read gives {ordinal} token, [{closing}].",
    "plain": "[{closing}] comes from one read of its own. No drafts: plain decoding, one read a token.",
    "plain.last": "[{closing}] comes from one read of its own. "
    "Only one token was left to write, so nothing was drafted.",
    "plain.context": "[{closing}] comes from one read of its own. The context is full, so nothing was drafted.",
    "plain.unsure": "[{closing}] comes from one read of its own. "
    "The drafter was not sure enough of any token, so nothing was drafted.",
    "plain.copy": "[{closing}] comes from one read of its own. Nothing to copy this round.",
    "plain.unknown": "[{closing}] comes from one read of its own. Nothing was drafted this round.",
    "nothing": "In this round nothing was drafted and nothing written.",
    "unjudged.one": " {draft} was never judged: it was written to follow {gone}.",
    "unjudged.many": " {Count} drafts behind {gone} were never judged: they were written to follow it.",
    "unjudged.over": " {Count} behind it {were} never judged: the text is over.",
    "finish.stop": " It ends the text.",
    "finish.length": " The length asked for is reached.",
    "finish.context": " The models’ context is full.",
}
STORY = {
    "read": "[One read of the target, {answers} answers:] what it would write in place of {each}, and what comes next.",
    "coin.sure": "[{draft} stays for sure:] the target wants it even more than the drafter. No coin needed.",
    "coin.equal": "[{draft} stays for sure:] the target wants it just as much as the drafter. No coin needed.",
    "coin.same": "[{draft} stays for sure:] the two models are identical here.",
    "coin.self": "[{draft} stays:] the target drafts for itself, and agrees with itself.",
    "coin.kept": "[{draft} stays:] {offer}, so a coin with {chances} decided, and it fell inside.",
    "coin.rejected": "[{draft} goes:] {offer}, so a coin with {chances} decided, and it fell outside.",
    "offer": "the drafter was keener on it than the target",
    "offer.copy": "the copy took it for certain, the target did not",
    "coin.never": "[{draft} goes:] the target would never write it here. No coin could save it.",
    "disjoint": " Here the models have nothing in common: every draft dies.",
    "greedy.lead": "",
    "gumbel_coupling.kept": "[{draft} stays:] both models pick with the same luck, and the target picked it too.",
    "gumbel_coupling.rejected": "[{draft} goes:] both models pick with the same luck, but the target picked "
    "[{target}].",
    "token_match.kept": "[{draft} stays:] the target drew for itself, and drew the same token.",
    "token_match.rejected": "[{draft} goes:] the target drew for itself, and drew [{target}].",
    "correction.coin": "[{closing} replaces {draft}:] drawn from what the target wants more than the drafter offered.",
    "correction.gumbel_coupling": "[{closing} replaces {draft}:] it is what the target picked with the same luck.",
    "correction.block": "[{closing} replaces {draft}:] drawn from what the target still wants there.",
}
"""What is told in other words, without exact chances, under Story."""


def say(template: str, /, *, story: bool = False, **fields: Any) -> Spans:
    """Fill a template; what it marks with ``[…]`` comes out strong. Fields are never searched for marks."""
    return fill(_template(template, story), **fields)


def fill(template: str, /, **fields: Any) -> Spans:
    """The same for a template of one's own."""
    spans: list[tuple[str, str]] = []
    for index, part in enumerate(re.split(r"[\[\]]", template)):
        strong = "strong" if index % 2 else ""
        for words, name, _, _ in Formatter().parse(part):
            spans.append((words, strong))
            if name is not None:
                kind = f"{strong} token".strip() if name in TOKEN_FIELDS else strong
                spans.append((str(fields[name]), kind))
    return tuple((text, kind) for text, kind in spans if text)


def plain(spans: Spans) -> str:
    """The sentence without its emphasis."""
    return "".join(text for text, _ in spans)


def of_event(round_: Round, event: Event, texts: Texts, *, story: bool = False, left: int | None = None) -> Spans:
    """The sentence for ``event``, which is one of ``round_``.

    ``left`` is how many tokens may still be written at the start of the round, where that is known.
    """
    if event.kind == "draft":
        return _drafting(round_, event.place or 0, texts, story, left)
    if event.kind == "read":
        count = len(round_.drafts)
        each = "the draft" if count == 1 else f"each of the {numbers.count(count)} drafts"
        return say("read", story=story, answers=numbers.count(count + 1), each=each)
    if event.kind == "closing":
        spans = _closing(round_, texts, story, left)
    elif judges_at_once(round_):
        spans = _block_verdict(round_)
    else:
        spans = _verdict(round_, round_.judged[event.place or 0], texts, story)
    return spans + (_finish(round_, texts) if closed(round_, event) else ())


def _template(name: str, story: bool) -> str:
    return STORY.get(name, TEMPLATES[name]) if story else TEMPLATES[name]


# --- drafting ---------------------------------------------------------------------------------------------------------


def _drafting(round_: Round, place: int, texts: Texts, story: bool, left: int | None) -> Spans:
    draft = round_.drafts[place]
    if story:
        spans = say(
            "draft.all.copy" if _copied(round_) else "draft.all", drafts=" ".join(texts(d.id) for d in round_.drafts)
        )
    elif _copied(round_):
        spans = say("draft.copy", draft=texts(draft.id))
    elif _settings(round_).get("rule") == "greedy":
        spans = say("draft.choice", draft=texts(draft.id))
    elif draft.q is None:
        spans = say("draft.unknown", draft=texts(draft.id))
    else:
        spans = say("draft", draft=texts(draft.id), q=numbers.probability(draft.q))
    return spans + (_short(round_, left) if place + 1 == len(round_.drafts) else ())


def _short(round_: Round, left: int | None) -> Spans:
    """Why there are fewer drafts than gamma; nothing where the record does not say."""
    count, wanted = len(round_.drafts), _settings(round_).get("gamma")
    if not isinstance(wanted, int) or count >= wanted:
        return ()
    drafts_left = "1 draft" if count == 1 else f"{count} drafts"
    if round_.gave_up:
        return say("short.unsure", drafts_left=drafts_left)
    if left == count + 1:  # each round keeps one token back for the closing one
        return say("short.budget", drafts_left=drafts_left, left=f"{left} tokens")
    if round_.finish == "context":
        return say("short.context", drafts_left=drafts_left)
    return say("short.copy", drafts_left=drafts_left) if _copied(round_) else ()


# --- verdicts ---------------------------------------------------------------------------------------------------------


def _verdict(round_: Round, draft: Draft, texts: Texts, story: bool) -> Spans:
    rule, text = rule_of(round_), texts(draft.id)
    if rule == "coin":
        return _coin(round_, draft, text, story)
    if rule == "unknown" or (rule != "greedy" and draft.accept_prob is None):
        return say(f"unknown.{draft.fate}", draft=text)
    return say(
        f"{rule}.{draft.fate}",
        story=story,
        draft=text,
        target=texts(draft.target_id) if draft.target_id is not None else "another token",
        times=numbers.times(draft.accept_prob) if draft.accept_prob is not None else "",
        lead=_lead(draft, story) if rule == "greedy" else "",
    )


def _lead(draft: Draft, story: bool) -> str:
    top = draft.row.target_top2 if draft.row is not None else None
    if top is None or len(top) < 2 or top[0][1] is None or top[1][1] is None:
        return ""
    return plain(say("greedy.lead", story=story, lead=f"{top[0][1] - top[1][1]:.2g}"))


def _coin(round_: Round, draft: Draft, text: str, story: bool) -> Spans:
    if draft.p is None or draft.q is None or draft.accept_prob is None:
        return say(f"unknown.{draft.fate}", draft=text)
    kept, tv = draft.fate == "kept", draft.row.tv if draft.row is not None else None
    p, q = numbers.factors(draft.p, draft.q)
    if kept and _settings(round_).get("drafter") == "target" and abs(draft.p - draft.q) <= ROUNDING:
        return say("coin.self", story=story, draft=text)
    if kept and draft.accept_prob >= 1:
        which = "same" if tv == 0 else "equal" if draft.p == draft.q else "sure"
        return say(f"coin.{which}", story=story, draft=text, p=p, q=q)
    if not kept and draft.accept_prob <= 0:
        spans = say("coin.never", story=story, draft=text, why=_why_zero(round_))
        return spans + (say("disjoint", story=story) if tv is not None and tv >= 1 else ())
    if draft.coin is None:
        return say(f"unknown.{draft.fate}", draft=text)
    _, coin = numbers.told_apart(draft.accept_prob, draft.coin)
    return say(
        f"coin.{draft.fate}",
        story=story,
        draft=text,
        p=p,
        offer=_template("offer.copy" if _copied(round_) else "offer", story).format(q=q),
        times=numbers.times(draft.accept_prob, beside=draft.coin),
        chances=numbers.chances(draft.accept_prob, beside=draft.coin),
        coin=coin,
        chance=numbers.part(draft.accept_prob, beside=draft.coin),
    )


def _why_zero(round_: Round) -> str:
    settings = _settings(round_)
    if settings.get("temperature") == 0:
        return TEMPLATES["why.greedy"]
    cuts = [
        name for name, on in (("top-k", settings.get("top_k")), ("top-p", settings.get("top_p") not in (None, 1))) if on
    ]
    return TEMPLATES["why.truncated"].format(cut=" and ".join(cuts)) if cuts else TEMPLATES["why.zero"]


def _block_verdict(round_: Round) -> Spans:
    kept, count = round_.kept, len(round_.drafts)
    if kept == 0:
        return say("block.none")
    # A stop token may end the text before the place that carries it.
    carrier = max((i for i, draft in enumerate(round_.drafts) if draft.passed), default=kept - 1)
    chance = round_.drafts[carrier].accept_prob
    which = "carrier.only" if count == 1 else "carrier"
    return say(
        "block.some" if kept < count else "block.one" if count == 1 else "block.all",
        Kept=numbers.count(kept).capitalize(),
        drafted=numbers.count(count),
        All=_all(count),
        stay="stays" if kept == 1 else "stay",
        carrier=TEMPLATES["carrier.unknown" if chance is None else f"{which}.sure" if chance >= 1 else which].format(
            place=carrier + 1
        ),
        carries=TEMPLATES["carries"] if carrier and chance is not None else "",
    )


# --- the closing token, and the end -----------------------------------------------------------------------------------


def _closing(round_: Round, texts: Texts, story: bool, left: int | None) -> Spans:
    closing = round_.closing
    if closing is None:
        return say("nothing")
    text = texts(closing.id)
    if closing.kind == "plain" or not round_.drafts:
        return say(why_plain(round_, left), closing=text)
    if closing.kind == "bonus" or round_.kept == len(round_.drafts):
        count = len(round_.drafts)
        ordinal = numbers.ordinal(count + 1)
        return say(
            "bonus", stayed=_all(count), ordinal=("an " if ordinal[:1] in "e8" else "a ") + ordinal, closing=text
        )
    gone = round_.drafts[round_.kept]
    which = rule_of(round_)
    if which == "coin":
        if _settings(round_).get("temperature") == 0:
            which = "greedy"
        elif _copied(round_):
            which = "copy"
        elif gone.row is not None and gone.row.tv == 0:
            which = "same"
    spans = say(f"correction.{which}", story=story, closing=text, draft=texts(gone.id))
    return spans + _unjudged(round_, texts(gone.id), texts)


def _all(count: int) -> str:
    return {1: "The draft", 2: "Both drafts"}.get(count, f"All {numbers.count(count)}")


def why_plain(round_: Round, left: int | None) -> str:
    """Why a round has no drafts: plain, plain.last, plain.context, plain.unsure, plain.copy or plain.unknown.

    ``left`` is how many tokens might be written when the round began, as far as the header tells: a run that was
    lengthened afterwards has a larger budget now.
    """
    settings = _settings(round_)
    if settings.get("gamma") == 0 or settings.get("drafter") == "none" or not settings:
        return "plain"
    if round_.gave_up:
        return "plain.unsure"
    if round_.finish == "context":
        return "plain.context"
    if left == 1 or round_.finish == "length" or settings.get("drafter") in ("model", "target"):
        return "plain.last"  # a model drafts whenever the budget leaves it room
    return "plain.copy" if _copied(round_) else "plain.unknown"


def _unjudged(round_: Round, gone: str, texts: Texts) -> Spans:
    left = [draft for draft in round_.drafts if draft.fate == "unjudged"]
    if len(left) == 1:
        return say("unjudged.one", draft=texts(left[0].id), gone=gone)
    return say("unjudged.many", Count=numbers.count(len(left)).capitalize(), gone=gone) if left else ()


def _finish(round_: Round, texts: Texts) -> Spans:
    """Why the text is over, where it is; what was drafted behind a kept stop token does not count."""
    if round_.finish is None:
        return ()
    if round_.closing is not None or not round_.kept:
        return say(f"finish.{round_.finish}")
    left = len(round_.drafts) - round_.kept
    ends = say("ends", draft=texts(round_.drafts[round_.kept - 1].id)) if round_.finish == "stop" else ()
    count = "one draft" if left == 1 else f"{numbers.count(left)} drafts"
    over = say("unjudged.over", Count=count.capitalize(), were="was" if left == 1 else "were") if left else ()
    return ends + over


def rule_of(round_: Round) -> str:
    """The way this round was judged: coin, greedy, gumbel_coupling, token_match, block or unknown."""
    names = {"speculative_sampling": "coin", "block_verification": "block"}
    rule = names.get(str(_settings(round_).get("rule")), str(_settings(round_).get("rule")))
    return rule if f"correction.{rule}" in TEMPLATES and rule not in ("same", "copy") else "unknown"


def _copied(round_: Round) -> bool:
    """Whether the drafts were copied from the text by n-gram look-up."""
    return _settings(round_).get("drafter") == "ngram"


def _settings(round_: Round) -> Mapping[str, Any]:
    return round_.settings or {}
