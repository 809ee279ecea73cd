"""What happened, in one sentence an event.

All wording is in :data:`TEMPLATES`. ``[…]`` marks the words to be set strong. A sentence is a tuple of spans
``(text, kind)``: plain text, which a view writes without interpreting it. The kind names how it is set: "" plain,
"strong", "token" for a token's text, or both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter
from typing import Any

from specviz.figures import numbers
from specviz.figures.events import Event, judges_at_once
from specviz.figures.text import Texts
from specviz.trace import Draft, Round

Spans = tuple[tuple[str, str], ...]
TOKEN_FIELDS = frozenset({"draft", "drafts", "closing", "target", "gone"})
"""Fields of a template that hold a token's text."""

TEMPLATES = {
    "draft": "The drafter says [{draft}], having given it {q}. The target has not been asked yet.",
    "draft.choice": "The drafter says [{draft}], its own first choice. The target has not been asked yet.",
    "draft.all": "The drafter guesses [{drafts}]. The target has not been asked yet.",
    "draft.short": " Only {count} this time: {left} left to write.",
    "read": "[One read of the target, {answers} answers]: what it wanted at every place, and after the last draft.",
    # Speculative sampling: a coin.
    "coin.sure": "[{draft} stays for sure:] the target gives it {p}, {more} the drafter’s {q}. No coin needed.",
    "coin.kept": "[{draft} stays:]{coin}",
    "coin.rejected": "[{draft} goes:]{coin}",
    "coin": " the target wanted {p}, the drafter offered {q}, so it stays {times}. The coin fell at {coin}.",
    "coin.never": "[{draft} goes:] {why}. No coin could save it.",
    "why.greedy": "at temperature 0 the target wants its first choice and nothing else",
    "why.truncated": "the target’s {cut} rules it out",
    "why.zero": "the target gives it no chance at all",
    # The target chooses for itself: greedy, Gumbel coupling, token match.
    "greedy.kept": "[{draft} stays:] it is the target’s first choice too.",
    "greedy.rejected": "[{draft} goes:] the target’s first choice is [{target}]{lead}.",
    "greedy.lead": ", ahead by {lead} in logits",
    "gumbel_coupling.kept": "[{draft} stays:] with that noise the target picks it too. That had a chance of {odds}.",
    "gumbel_coupling.rejected": "[{draft} goes:] with that noise the target picks [{target}]. "
    "{draft} had a chance of {odds}.",
    "token_match.kept": "[{draft} stays:] the target’s own draw is the same token. That had a chance of {odds}.",
    "token_match.rejected": "[{draft} goes:] the target’s own draw is [{target}]. A match had a chance of {odds}.",
    "unknown.kept": "[{draft} stays.]",
    "unknown.rejected": "[{draft} goes.]",
    # Block verification: all coins at once.
    "block.none": "[None stays:] no coin fell inside its bar.",
    "block.one": "[It stays:] its coin fell inside its bar.",
    "block.some": "[{Kept} of {drafted} {stay}:] the last coin inside its bar is at place {kept}; "
    "it carries all before it.",
    "block.all": "[All {drafted} stay:] the last coin fell inside its bar, and it carries all before it.",
    "ends": " It ends the text.",
    # The closing token.
    "correction.coin": "[{closing} replaces {draft}:] drawn from what the target wants more than the drafter offered.",
    "correction.same": "[{closing} replaces {draft}:] the two laws leave no gap, so it is drawn from the target’s.",
    "correction.greedy": "[{closing} replaces {draft}:] the target’s first choice.",
    "correction.gumbel_coupling": "[{closing} replaces {draft}:] what the target picked itself with that noise.",
    "correction.token_match": "[{closing} replaces {draft}:] the target’s own draw.",
    "correction.block": "[{closing} replaces {draft}:] drawn from what the target still wants, "
    "the block before it weighed in.",
    "correction.unknown": "[{closing} replaces {draft}.]",
    "bonus": "[{stayed} stayed:] the same read gives {ordinal} token, [{closing}].",
    "plain": "[{closing}:] one read, one token. No drafts: plain decoding.",
    "plain.last": "[{closing}:] one read, one token. Only one was left to write, so nothing was drafted.",
    "unjudged.one": " {draft} was never judged: it was written to follow {gone}.",
    "unjudged.many": " {Count} more were never judged: they were written to follow {gone}.",
    "unjudged.over": " {Count} behind it {were} never judged: the text is over.",
}


def say(template: str, /, **fields: Any) -> Spans:
    """Fill a template; what it marks with ``[…]`` comes out strong. Fields are never searched for marks."""
    return fill(TEMPLATES[template], **fields)


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

    ``left`` is how many tokens may still be written at the start of the round, where the budget made it short.
    """
    if event.kind == "draft":
        return _drafting(round_, event.place or 0, texts, story, left)
    if event.kind == "read":
        return say("read", answers=numbers.count(len(round_.drafts) + 1))
    if event.kind == "closing":
        return _closing(round_, texts)
    if judges_at_once(round_):
        return _block_verdict(round_)
    return _verdict(round_, round_.judged[event.place or 0], texts) + _over(round_, event)


def _drafting(round_: Round, place: int, texts: Texts, story: bool, left: int | None) -> Spans:
    draft, last = round_.drafts[place], place + 1 == len(round_.drafts)
    if story:
        spans = say("draft.all", drafts=" ".join(texts(d.id) for d in round_.drafts))
    elif _settings(round_).get("rule") == "greedy" or draft.q is None:
        spans = say("draft.choice", draft=texts(draft.id))
    else:
        spans = say("draft", draft=texts(draft.id), q=numbers.probability(draft.q))
    wanted = _settings(round_).get("gamma")
    if last and left is not None and wanted is not None and len(round_.drafts) < wanted:
        tokens = "1 token" if left == 1 else f"{left} tokens"
        spans += say("draft.short", count=_drafts(len(round_.drafts)), left=tokens)
    return spans


def _verdict(round_: Round, draft: Draft, texts: Texts) -> Spans:
    rule, text = rule_of(round_), texts(draft.id)
    if rule == "coin":
        return _coin(round_, draft, text)
    chance = numbers.odds(draft.accept_prob) if draft.accept_prob is not None else "–"
    target = texts(draft.target_id) if draft.target_id is not None else "another token"
    top = draft.row.target_top2 if draft.row is not None else None
    lead = ""
    if rule == "greedy" and top is not None and len(top) > 1 and top[0][1] is not None and top[1][1] is not None:
        lead = plain(say("greedy.lead", lead=f"{top[0][1] - top[1][1]:.2g}"))
    return say(f"{rule}.{draft.fate}", draft=text, target=target, odds=chance, lead=lead)


def _coin(round_: Round, draft: Draft, text: str) -> Spans:
    if draft.p is None or draft.q is None or draft.accept_prob is None:
        return say(f"unknown.{draft.fate}", draft=text)
    p, q = numbers.told_apart(draft.p, draft.q)
    if draft.accept_prob >= 1 and draft.fate == "kept":
        return say("coin.sure", draft=text, p=p, q=q, more="just" if draft.p == draft.q else "more than")
    if draft.accept_prob <= 0:
        return say("coin.never", draft=text, why=_why_zero(round_))
    _, coin = numbers.told_apart(draft.accept_prob, draft.coin)
    times = numbers.times(draft.accept_prob, beside=draft.coin)
    return say(f"coin.{draft.fate}", draft=text, coin=plain(say("coin", p=p, q=q, times=times, coin=coin)))


def _why_zero(round_: Round) -> str:
    settings = _settings(round_)
    if settings.get("temperature") == 0:
        return TEMPLATES["why.greedy"]
    cuts = [name for name, on in (("top-k", settings.get("top_k")), ("top-p", settings.get("top_p", 1.0) < 1)) if on]
    return TEMPLATES["why.truncated"].format(cut=" and ".join(cuts)) if cuts else TEMPLATES["why.zero"]


def _block_verdict(round_: Round) -> Spans:
    kept, count = round_.kept, len(round_.drafts)
    which = "none" if kept == 0 else "some" if kept < count else "one" if count == 1 else "all"
    stay = "stays" if kept == 1 else "stay"
    return say(
        f"block.{which}", Kept=numbers.count(kept).capitalize(), kept=kept, drafted=numbers.count(count), stay=stay
    )


def _closing(round_: Round, texts: Texts) -> Spans:
    closing = round_.closing
    assert closing is not None
    text = texts(closing.id)
    if closing.kind == "plain" or not round_.drafts:
        return say("plain.last" if _settings(round_).get("gamma") else "plain", closing=text)
    if closing.kind == "bonus":
        count = len(round_.drafts)
        stayed = "The draft" if count == 1 else f"All {numbers.count(count)}"
        ordinal = numbers.ordinal(count + 1)
        return say("bonus", stayed=stayed, ordinal=("an " if ordinal[:1] in "e8" else "a ") + ordinal, closing=text)
    gone = round_.drafts[round_.kept]
    rule = rule_of(round_)
    if rule == "coin" and gone.row is not None and gone.row.tv == 0:
        rule = "same"
    return say(f"correction.{rule}", closing=text, draft=texts(gone.id)) + _unjudged(round_, texts(gone.id), texts)


def _unjudged(round_: Round, gone: str, texts: Texts) -> Spans:
    left = [draft for draft in round_.drafts if draft.fate == "unjudged"]
    if len(left) == 1:
        return say("unjudged.one", draft=texts(left[0].id), gone=gone)
    return say("unjudged.many", Count=numbers.count(len(left)).capitalize(), gone=gone) if left else ()


def _over(round_: Round, event: Event) -> Spans:
    """After a kept stop token: the text is over, what was drafted behind it does not count."""
    if round_.closing is not None or event.place != len(round_.judged) - 1:
        return ()
    left = len(round_.drafts) - len(round_.judged)
    if not left:
        return say("ends")
    drafts = _drafts(left).capitalize()
    return say("ends") + say("unjudged.over", Count=drafts, were="was" if left == 1 else "were")


def rule_of(round_: Round) -> str:
    """The way this round was judged: coin, greedy, gumbel_coupling, token_match, block or unknown."""
    names = {"speculative_sampling": "coin", "block_verification": "block"}
    rule = names.get(str(_settings(round_).get("rule")), str(_settings(round_).get("rule")))
    return rule if f"correction.{rule}" in TEMPLATES else "unknown"


def _drafts(count: int) -> str:
    return "one draft" if count == 1 else f"{numbers.count(count)} drafts"


def _settings(round_: Round) -> Mapping[str, Any]:
    return round_.settings or {}
