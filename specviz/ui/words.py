"""The words of the pages: labels, hints, messages. Sentences about a run are in :mod:`specviz.figures.sentences`."""

from __future__ import annotations

import re
from typing import Any

from specviz.workloads import WORKLOADS

PAGES = {
    "Decode": "app.py",
    "Overlap": "pages/Overlap.py",
    "Gumbel": "pages/Gumbel.py",
    "Gamma": "pages/Gamma.py",
    "Roofline": "pages/Roofline.py",
    "Profile": "pages/Profile.py",
}
"""The pages by their names, as the sidebar lists them, and their scripts; one that is not there is not listed."""

LEAD = (
    "A small drafter guesses a few tokens; one read of the big target judges them all. The text stays the target’s own."
)

PICKED = (
    "A recorded run, picked because its first rounds show every fate. "
    "A typical text: shared {alpha:.2f} (alpha over 40 prompts, recorded)."
)

STRIP: dict[str, Any] = {
    "prompt": "The prompt: given, not judged.",
    "empty": "Nothing is written yet. Press Step: the drafter guesses, the target judges.",
    "all": "show all drafts",
    "fewer": "show fewer drafts",
    "pinned": "back to the moment",
    "live": "live from token {token}",
    "whole": "show all {characters} characters",
    "part": "show less",
    "scrubber": "Drag to any moment. Marks above: rounds; marks below: rejected drafts so far.",
    "meanings": {
        "kept": "a draft that stays in the text",
        "rejected": "a draft that is thrown away",
        "unjudged": "written to follow a token that is gone",
        "correction": "the target’s token in place of the rejected draft",
        "bonus": "one token more, when every draft stayed",
        "waiting": "drafted; its verdict is still to come",
        "plain": "one read of the target, one token, no drafts",
    },
}
COIN = {
    "stays": "stays",
    "goes": "goes",
    "inside": "inside the bar",
    "outside": "outside",
    "coin": "coin",
    "coin_drag": "coin: drag it",
    "drag": "Drag: what if it had fallen elsewhere? Or the arrow keys.",
    "pin": "coin of place {place}, {draft}",
    "not_yet": "not asked yet",
    "what_if": "what if",
    "back": "back to what happened",
    "ask": "ask one place at a time",
    "asking": "asking …",
    "table": "as a table",
}
PLACE: dict[str, Any] = {
    "both": "both",
    "only_target": "only the target",
    "only_drafter": "only the drafter",
    "p": "p, the target’s",
    "q": "q, the drafter’s",
    "owed": "w·p inside p",
    "lane": {"target": "the target", "drafter": "the drafter"},
    "first": {"race": "first home", "pale": "first choice"},
    "shared": "shared",
    "table": "as a table",
}
EXACT = {
    "badge": "simulated",
    "deal": "deal 100,000 times",
    "others": "others",
    "table": "as a table",
}
TALLY: dict[str, Any] = {
    "title": "Tally · {rounds} so far",
    "none": "Tally",
    "table": "as a table",
    "engines": "what engines call it",
    "places": "Rounds that kept at least 1, 2, … drafts",
    "place": "drafts",
    "reached": "of rounds that drafted as many",
    "kept": "of rounds that judged that place",
    "few": "Grey: counted fewer than ten times.",
    "lengths": "Tokens a round brought",
    "closings": {
        "correction": "closed by a correction",
        "bonus": "by a bonus",
        "plain": "by a plain read",
        "kept": "by the text’s end",
    },
    "or": " or ",
    "band": "Kept so far, and what the rule expects",
    "judged": "{judged} judged",
    "pin": "kept",
    "spread": "expected",
    "common": "both begin",
    "both": "both wrote",
    "ours": "with the drafter",
    "theirs": "the target alone",
    "on": " …",
    "more": "show all of the text",
    "less": "show less",
    "logits": "the logits where they part",
}
TABLE = "as a table"
"""Under every figure, the same numbers."""

LANES: dict[str, Any] = {
    "alone": "the target alone: {tokens} in {time}",
    "ours": "with the drafter: {tokens} in {rounds}, {time}",
    "tokens": ["1 token", "{count} tokens"],
    "rounds": ["1 round", "{count} rounds"],
    "under_way": "the first round",
    "kept_more": "×{count}",
    "time": "ms of GPU memory (HBM) time, modelled; shorter is better",
    "overview": "the whole run so far; the box is what stands above",
    "stairs": "{unit} for the tokens so far; lower is better",
    "units": {"ms": "ms of HBM time", "GB": "GB moved"},
    "unit": "What is counted",
    "x": "tokens",
    "keys": {"drafter": "drafter reads", "target": "target reads", "kv": "caches", "plain": "the target alone"},
    "expected": "as expected",
    "round": "Round {number}: {parts} = {sum}, for {tokens}. The target alone: {plain}.",
    "drafting": ["1 drafter read {time}", "{count} drafter reads {time}"],
    "reading": "one target read {time}",
    "hover": "Point at a round, or press ↑ and ↓, for its numbers.",
    "columns": [
        "round",
        "drafter reads",
        "drafter",
        "target",
        "caches in it",
        "all",
        "tokens",
        "target alone",
        "all so far",
        "target alone so far",
    ],
    "caption": "Every round that is over, {unit}, modelled",
    "table": "as a table",
    "board": "On a board",
    "no_drafts": "On this machine, measured: no drafts, so there is nothing to compare.",
}
RUNNING: dict[str, Any] = {
    "recorded": "recorded",
    "here": "measured here",
    "file": "from a file",
    "cancel": "Cancel",
    "left": "{progress}; about {time} left",
    "left.rough": "{progress}; roughly {time} left, by the first steps alone",
    "left.soon": "{progress}; a few seconds left",
    "seconds": "{count} seconds",
    "minutes": "{count} minutes",
    "waiting": "Waiting for the device: {before} before you.",
    "unloadable": "The models could not be loaded: {reason}",
    "json": "Download all of it (JSON)",
    "refused": "{reason}. What is shown stays.",
    "size": "the file has {size:.1f} MB, and at most {most:g} MB are read",
}
"""What every experiment that a page runs has to say; each has words of its own besides."""

PROFILE: dict[str, Any] = RUNNING | {
    "lead": "Is it really memory? What this machine copies, multiplies and reads, measured, "
    "beside what that would allow.",
    "standing": "{pair} · {context:,} tokens in the caches · {created}",
    "measured": "measured",
    "rows": "rows of the read",
    "binds": "arithmetic binds (modelled)",
    "whisker": "the middle half of the samples",
    "roof": "what measured bandwidth and arithmetic allow (modelled)",
    "band": "the same with the spread of both",
    "shares": "Share of the copy bandwidth",
    "ratios": "c: a drafter read in target reads",
    "tables": ["the machine as a table", "the reads as a table"],
    "table": "as a table",
    "start": "Measure this machine",
    "again": "Measure again",
    "context": "tokens in the caches",
    "alone": "Measuring takes the device for itself: whoever decodes meanwhile waits until it is over, "
    "because a time taken while others decode is no measurement. Close other programs too.",
    "progress": "{done} of {total} samples",
    "cancelled": "Cancelled. What was measured up to then is shown.",
    "cancelled.nothing": "Cancelled before anything was measured: a sample counts after one turn that warms up.",
    "too_long": "This cannot be measured: {reason}.",
    "failed": "The measurement ended early ({reason}). What was measured up to then is shown.",
    "memory": "The machine ran out of memory. Close other programs, or take a smaller pair, and measure again.",
    "models": "The models are loading; then it measures.",
    "absent": "The models are not on this machine, so it cannot be measured: fetch the embedded pair on the Decode "
    "page, or run `python -m specviz fetch`.",
    "csv": "Download the reads (CSV)",
    "open": "Open a profile",
    "open.label": "A profile from a file (.json, at most 1 MB)",
    "back": "Back to the recorded profile",
    "none": "No recorded profile is here. Measure this machine.",
    "server": "And your server?",
    "server.lead": "Its speed says how much of the memory’s bandwidth it uses. The form opens with a published speed: "
    "SGLang’s documentation, Llama-3.1-8B on one H100, without drafts; the length of the cache is assumed.",
    "model": "Model",
    "dtype": "Weights stored as",
    "accelerator": "Runs on",
    "devices": "how many of them",
    "batch": "batch: readers at a time",
    "server_context": "tokens in each reader’s cache",
    "speed": "tokens a second, as you measured",
    "counted": "counted for",
    "counts": {"one": "one reader", "all": "all readers together"},
    "this": "this machine, measured",
    "end": "100 %",
    "end.over": "the dashed line: 100 %",
}
SWEEP: dict[str, Any] = RUNNING | {
    "start": "Measure it here",
    "again": "Measure again",
    "alone": "Measuring takes the device for itself: whoever decodes meanwhile waits, because a time taken while "
    "others decode is no measurement. Close other programs too.",
    "progress": "{done:,} of {total:,} tokens",
    "cancelled": "Cancelled. What was measured up to then is shown.",
    "cancelled.nothing": "Cancelled before anything was measured.",
    "too_long": "This cannot be measured: {reason}.",
    "failed": "The sweep ended early ({reason}). What was measured up to then is shown.",
    "memory": "The machine ran out of memory. Close other programs, or take fewer or shorter prompts, and measure "
    "again.",
    "models": "The models are loading; then it measures.",
    "absent": "The models are not on this machine, so nothing can be measured: fetch the embedded pair on the Decode "
    "page, or run `python -m specviz fetch`.",
    "csv": "Download the figures (CSV)",
    "open": "Open a sweep",
    "open.label": "A sweep from a file (.json, at most 1 MB)",
    "back": "Back to the recorded sweep",
    "none": "No recorded sweep is here. Measure this machine.",
}
GRID: dict[str, Any] = RUNNING | {
    "start": "Decode them all here",
    "all": "All: {texts} texts of {tokens} tokens, {total:,} tokens in all{time}.",
    "all.time": "; at the pace of those shown about {time}",
    "again": "Decode them all again",
    "progress": "{done:,} of {total:,} tokens",
    "cancelled": "Cancelled. The texts that were through by then are shown.",
    "cancelled.nothing": "Cancelled before the first text was through.",
    "too_long": "This cannot be decoded: {reason}.",
    "failed": "It ended early ({reason}). The texts that were through by then are shown.",
    "memory": "The machine ran out of memory. Close other programs, or take a smaller pair, and try again.",
    "models": "The models are loading; then they decode.",
    "absent": "The models are not on this machine, so nothing can be decoded: fetch the embedded pair on the Decode "
    "page, or run `python -m specviz fetch`.",
    "open": "Open a grid",
    "open.label": "A grid from a file (.json, at most 1 MB)",
    "back": "Back to the recorded grid",
    "none": "No recorded grid is here. Decode the texts on this machine.",
}
ROUNDS = {"title": "Every round in words", "table": "as a table"}

OVERLAP: dict[str, Any] = {
    "lead": "What two models share at a place is how often a coin keeps a draft there. Bend both, and try every rule.",
    "modelled": "modelled",
    "source": "Where the chances are from",
    "sources": {"run": "a place of the run", "hand": "bent by hand"},
    "preset": "Pairs to begin with",
    "place": "Places of the run",
    "other": "any other place",
    "ask": "Ask the models for place {position}",
    "ask.help": "One read of each model gives their chances for the whole vocabulary.",
    "unasked": "The record lists a few tokens of this place only. "
    "Place {shown} stays on screen until the models are asked for place {asked}.",
    "focus": "where Decode stands: {number}",
    "no_run": "No run is here: bend the two by hand.",
    "title.hand": "Bend what each model wants",
    "title.run": "What each model wanted: {label}",
    "presets": {"default": "mirrored", "classic": "close"},
    "story": "Numbers also shows {names}.",
    "scaled": " {model} as typed did not add up to 1: it is scaled so that it does.",
    "decode": "this place on Decode",
    "note.hand": "Drag the triangles or type: the other tokens share what is left.",
    "note.warped": "The triangles stay as bent; the bars are what temperature, top-k and top-p make of that.",
    "note.run": "The whole vocabulary is behind it: {count} tokens.",
    "note.ngram": " This run copied its drafts from the text; q here is the pair’s own drafter’s.",
    "note.none": " This run drafted nothing; q here is the pair’s own drafter’s.",
    "unread": "The drafter’s context ends before this place, so it has no chances here. Take an earlier one.",
    "lists": "Type or paste both",
    "p": "p, the target’s",
    "q": "q, the drafter’s",
    "list.help": "2 to 12 numbers, at least 0 and not all 0, with spaces or commas between. "
    "They are scaled to add up to 1; a shorter list goes on with zeros.",
    "list.takes": "it takes 2 to 12 numbers, at least 0 and not all 0",
    "list.refused": "{model} “{raw}” cannot be used: {takes}. {instead} stays.",
    "place.takes": "this run has no such place",
    "place.none": "none",
    "p_temperature": "temperature of the target",
    "q_temperature": "temperature of the drafter",
    "pq_top_k": "top-k of both",
    "pq_top_p": "top-p of both",
    "p_temperature.note": "moves p: what the text is drawn from changes",
    "q_temperature.note": "moves q only: speed changes, the text’s chances do not",
    "own.button": "back to the run’s own settings",
    "wrong_drafts": "also a drafter that lies: it draws from other chances than it reports",
    "hints": {
        "speculative_sampling": "a coin for min(1, p/q), else the gaps are filled",
        "drafter_at_0": "the same, and the drafter always takes its first choice",
        "gumbel_coupling": "both pick with the same noise",
        "token_match": "the target draws for itself",
        "block_verification": "drafts are judged together; one alone is judged as under Sampling",
        "greedy": "both at temperature 0: a draft stays where both have the same first choice",
        "resample_from_p": "after a rejection all of p is drawn from, gaps or not",
        "match_then_redraw": "a draw of the target’s that differs is thrown away for another",
        "strike_out": "after a rejection any token but the draft is drawn, by the target’s chances, gap or not",
        "q_before_temperature": "drafts are drawn at one temperature and reported at another",
        "argmax_drafted_softmax_reported": "drafts its first choice (argmax), but reports its chances (softmax)",
    },
}
BEND = {
    "handle": {"p": "drag: p", "q": "drag: q"},
    "chance": "{model} of {token}",
    "add": "+ another token",
    "remove": "take {token} away",
    "now": "→ {chance}",
    "now.help": "{model} of {token} after temperature, top-k and top-p",
    "clamped": "{typed} is no chance: one lies between 0 and 1, so it was taken as {chance}.",
}

ROOFLINE = {
    "lead": "What does the chip wait for? Nearly always for its memory: a token takes one read of all the weights.",
    "modelled": "modelled",
    "own_chip": "a chip of my own",
    "terabytes_s": "its bandwidth, TB/s",
    "teraflops": "its rate, dense TFLOP/s at 16 bits",
    "refused": "{reason} {instead} is shown instead.",
    "dtype": "weights stored as",
    "batch": "batch: readers served at once",
    "context": "tokens of context, each reader",
    "drafts": "gamma γ: drafts a round",
    "alpha": "shared (alpha)",
    "alpha.from": "Opens at {alpha:.2f}: the embedded pair’s over 40 prompts, recorded.",
    "today": "take today’s {alpha:.2f}",
    "today.help": "Shared in the run on the Decode page.",
    "mixture": "a mixture of experts instead: Qwen3-30B-A3B",
    "preset": "set the page to 70B + 1B on two chips",
    "unmeasured": "No read was timed yet: the Profile page measures this machine.",
    "here": "measured",
    "recorded": "recorded",
}

LINES = {
    "ran": "ran",
    "idle": "did not run",
    "called": "what these lines call",
    "table": TABLE,
}
BENCH = {
    "title": "Losslessness bench",
    "lead": "This place dealt many times, by the very functions that decode: does the text keep the target’s chances?",
    "rule": "On the bench",
    "wrong": " (wrong)",
    "others": "others",
    "deal": "Deal {count:,} times",
    "again": "Deal {count:,} again, next seed",
    "seed": "seed",
    "all": "All rules at once",
    "stop": "Stop",
    "stopped": "Stopped. What was dealt up to then stays.",
    "failed": "Dealing failed ({reason}). What was dealt up to then stays; press again, or take another place.",
    "progress": "{name}: {done:,} of {whole:,}",
    "gamma": "gamma γ: drafts a round",
    "stays": "A draft that stays",
    "goes": "A draft that goes",
    "no_go": "Many rounds were tried, and no draft went: here it hardly can. One that stays is shown.",
    "no_stay": "Many rounds were tried, and no draft stayed: here it hardly can. One that goes is shown.",
}

POSITIONS = {
    "place": "{number} · after “{tail}” · {fate}",
    "first": "{number} · the first token · {fate}",
    "kept": "kept",
    "rejected": "rejected",
    "bonus": "bonus",
    "plain": "plain",
    "told.kept": "The draft {draft} was kept here.",
    "told.rejected": "The draft {draft} was rejected here, and {token} took its place.",
    "told.bonus": "All drafts before it were kept, and {token} is the bonus.",
    "told.plain": "Nothing was drafted here: {token} is the target’s own.",
    "recorded": "recorded",
    "measured": "measured",
    "nowhere": "This run has no place {asked}: counted with the prompt, those of its text go from {first} to {last}. "
    "Choose one of the list.",
    "nothing": "This run has no text yet, so it has no places. Step on the Decode page first.",
    "absent": "Only places whose rows are recorded can be taken: for any other the models are needed, and they are not "
    "on this machine. Fetch the embedded pair on the Decode page, or run `python -m specviz fetch`.",
    "fixed": "This run’s pair is not on offer here, so no model can read its places again.",
    "loading": "The models are loading; then they read this place.",
    "refused": "This place cannot be read: {reason}.",
    "failed": "Reading this place failed ({reason}). Choose it again, or another.",
}

GAMMA: dict[str, Any] = {
    "lead": "How many drafts a round? Too few leave speed on the table, too many are read for nothing.",
    "modelled": "modelled",
    "theory_alpha": "shared (alpha)",
    "theory_c": "c: a drafter’s read, in reads of the target",
    "theory_gamma": "gamma γ: drafts a round",
    "theory_ops": "the drafter’s arithmetic for a token, over the target’s",
    "from": "Opens at the embedded pair’s own: shared {alpha:.2f} over 40 prompts; a drafter’s read costs {cost} "
    "on the machine that recorded it.",
    "take": "take those of {name}: {alpha}, c {c}",
    "take.story": "take those of {name}",
    "take.help": "Shared and c of {source}.",
    "whose": "Each has a shared of its own, for other texts share otherwise.",
    "of_sweep": "the sweep below, all its prompts and fixed gammas",
    "of_run": "the run on Decode and the profile",
    "badges": {"recorded": "recorded", "here": "measured", "file": "recorded"},
    "lose": "make it lose",
    "lose.help": "Sets the sliders to a drafter whose read costs half the target’s and that agrees three times in ten, "
    "and the sweep to what lost most.",
    "unlose": "back",
    "lost": "Set: shared {alpha:.2f}, a drafter’s read at {cost}, gamma {gamma}.",
    "lost.most": " Below: prompts “{workload}”, {policy}, which lost most by the clock.",
    "engine": "Take it to your engine",
    "engine.lead": "Gamma {gamma} in four engines. TARGET and DRAFTER are your models’ names or files.",
    "engine.story": "The flags for four engines are under Numbers.",
    "engine.none": "Gamma 0 is plain decoding: start the engine without a drafter.",
    "engine.page": "documentation",
    "sweep": "The same by the clock",
    "sweep.lead": "The same prompts under every gamma, one after the other round by round, so that a slow moment falls "
    "on all alike.",
    "standing": "{origin}: {pair} on {device}, {dtype} · {rule}, T = {temperature:g}, seed {seed} · "
    "drafter: {drafter} · {tokens} tokens a text · {created}",
    "workload": "Prompts",
    "all": "all",
    "explained": "Gamma to explain",
    "sets": "Measure with",
    "own": "Prompts of your own, as well as the kinds above, one a line",
    "own.help": "At most {most} prompts; of each the models read the first 2,000 characters.",
    "own.cut": "{count} prompts: the first {most} are measured.",
    "tokens": "tokens a text",
    "nothing": "Choose prompts, or write some of your own.",
    "measure": "What to measure with",
    "amount": "{prompts} × {policies} ways to draft × {tokens} tokens = {total:,} tokens",
    "about": ", about {time} if this machine is as fast as that of the sweep shown",
    "drafter": "Who drafts",
    "prompts": ["1 prompt", "{count} prompts"],
}

PRESETS = WORKLOADS
OWN = "own text"
RECORDED = "recorded"
OWN_LABEL = "Your text, up to 2,000 characters"
OWN_PLACEHOLDER = "What should the models answer?"
OWN_CUT = "{length:,} characters: the models read the first 2,000."

RULES = {
    "speculative_sampling": "Sampling",
    "greedy": "Greedy",
    "gumbel_coupling": "Gumbel",
    "token_match": "Match",
    "block_verification": "Block",
}
RULE_HELP = {
    "speculative_sampling": "A draft stays with chance min(1, p/q); else the target’s gaps are dealt from.",
    "greedy": "Temperature 0: a draft stays where it is the target’s first choice. Nothing is left to chance.",
    "gumbel_coupling": "Both models pick with the same noise; a draft stays where both pick the same token.",
    "token_match": "The target draws for itself; a draft stays where it is that very token.",
    "block_verification": "All coins together: the last one inside its bar carries every draft before it.",
}
ENTRANTS = RULES | {
    "drafter_at_0": "Sampling, drafter at 0",
    "resample_from_p": "Dealt again from p",
    "match_then_redraw": "Match, then drawn anew",
    "strike_out": "Anything but the draft",
    "q_before_temperature": "q before temperature",
    "argmax_drafted_softmax_reported": "First choice, told as chances",
}
"""What is on trial at a place: the rules, and after them what is wrong, or given a wrong draft."""
RARE_RULES = ("token_match", "block_verification")
DRAFTERS = {"model": "small model", "target": "the target itself", "ngram": "n-gram: copies", "none": "none"}
DRAFTER_HELP = {
    "model": "The pair’s own drafter guesses.",
    "target": "The target drafts for itself: p = q, nearly every draft is kept, and nothing is saved.",
    "ngram": "No model: it copies what followed the same words earlier in the text, where there is something to copy.",
    "none": "No drafts: plain decoding, one read a token.",
}
DETAILS = ("Story", "Numbers", "Formulas")

CONTROLS = {
    "pair": "Pair",
    "rule": "Rule",
    "gamma": "gamma γ: drafts a round",
    "gamma.help": "The target checks them in one read of gamma + 1 rows. 0: no drafts, plain decoding.",
    "temperature": "temperature",
    "temperature.linked": "moves both; p changes, so what the text is drawn from changes",
    "temperature.free": "moves p only: what the text is drawn from changes",
    "temperature.greedy": "greedy is temperature 0",
    "temperature.zero": "now greedy: every p is 0 or 1",
    "linked": "drafter at the same temperature",
    "drafter_temperature": "drafter temperature",
    "drafter_temperature.note": "moves q only: speed changes, the text’s chances do not",
    "drafter_temperature.gumbel": "moves q only: speed changes, not even the text does",
    "drafter": "Drafter",
    "ngram": "longest match",
    "ngram.help": "So many tokens at the end of the text are looked up earlier in it; where they are not there, fewer.",
    "top_k": "top-k",
    "top_k.help": "Keep the k likeliest tokens of both models. 0 keeps all.",
    "top_p": "top-p",
    "top_p.help": "Keep the likeliest tokens of both models up to this mass.",
    "length": "length",
    "length.help": "Tokens to write at most.",
    "seed": "Seed",
    "prompt": "Prompt",
    "more": "more",
    "accelerator": "Accelerator",
    "priced": "Pair that is priced",
    "count": "Weights counted",
}
COUNTS = {"stored": "as stored", "read": "as read"}

CHANGED = {
    "pair": "the pair",
    "prompt": "the prompt",
    "rule": "the rule {value}",
    "temperature": "T = {value}",
    "drafter_temperature": "drafter T = {value}",
    "top_k": "top-k {value}",
    "top_p": "top-p {value}",
    "drafter": "drafter: {value}",
    "ngram": "longest match {value}",
}
"""A setting that was changed, in a few words."""

LINK = {
    "copy": "Copy link",
    "copied": "copied",
    "by_hand": "Copy it from here:",
    "one": "The link asked for {asked}; {takes}, so {instead} is used.",
    "many": "The link asked for {asked}, which cannot be had; the usual values are used instead.",
    "more": "{count} more",
    "moment": "the moment",
    "moment.takes": "a moment is a round and an event, as in 7.3",
    "moment.instead": "the usual one",
    "whole": "it is a whole number from {low:,} to {high:,}",
    "range": "it goes from {low:g} to {high:g}",
    "switch": "it is true or false",
    "not_offered": "that is not on offer",
    "no_moment": "The link asked for the moment {at}, which this run of {rounds} does not have.",
    "held": "This link’s run is decoded here as soon as the models are ready.",
    "absent": "This link’s run has to be decoded, and the models are not on this machine: here is a recorded run.",
    "file": "This run came from a file: share the file.",
    "own": "This run has a text of its own, which stays out of links: share it as a file.",
    "midway": "This run was changed midway: share it as a file.",
}
FILES = {
    "download": "Download this run",
    "open": "Open a run",
    "label": "A run from a file (.jsonl, at most 5 MB)",
    "refused": "{reason}. What is shown stays.",
    "size": "the file has {size:.1f} MB, and at most 5 MB are read",
    "rounds": "The file has {rounds:,} rounds; the first {shown:,} are shown.",
    "unfit": "The controls show the usual values where this run’s own are not said or not on offer.",
    "stops": "In this run the drafter stops where it is not sure enough. Rounds decoded here draft on.",
    "no_pair": "This run ends here: no model can go on, because its pair ({pair}) is not on offer.",
    "no_prompt": "This run ends here: no model can go on, because the file does not say its prompt.",
}

BUTTONS = {
    "restart": "Restart",
    "back": "Back",
    "step": "Step",
    "round": "Round",
    "play": "Play",
    "pause": "Pause",
    "detail": "How much is shown",
}

OFFER = {
    "changed": "You changed: {changes}. The recorded run keeps its own settings.",
    "pair": "This run was decoded by another pair. Changed: {changes}.",
    "continue": "Continue live from here with {changes}",
    "start": "Start a live run",
    "live": "The recording ended; from here on the models run on this machine.",
    "open": "Open the recorded run: {name}",
    "keep": "Keep the recording",
    "keep_live": "Keep this run",
    "twin": "Let the target write it alone",
}
RECORDINGS = {
    "sampling": "Sampling",
    "greedy": "Greedy",
    "gumbel": "Gumbel",
    "match": "Match",
    "block": "Block",
    "ngram": "n-gram copies",
}

STATUS = {
    "recorded": "recorded",
    "measured": "measured here",
    "file": "from a file",
    "until": "{source} until token {token}",
    "onwards": "measured here from then on",
    "absent": "The models are not on this machine yet; what you see is a recorded run.",
    "fetch": "Fetch the embedded pair ({megabytes} MB, once)",
    "retry": "Try again",
    "load": "Load the models",
    "idle": "models not loaded",
    "loading": "models loading",
    "ready": "live ready",
    "failed": "models not available",
}

MESSAGES = {
    "stop": "The text ended with its stop token. Restart to look at it again, or change seed or prompt for another.",
    "context": "The models’ context is full: nothing can be added. Change the prompt for a new run.",
    "length": "The length of {length} tokens is reached. Raise it to go on.",
    "absent": "This needs the models, and they are not on this machine. Fetch the embedded pair first.",
    "held": "The models are loading; this goes on by itself when they are ready.",
    "failed": "The models could not be loaded: {reason}",
    "waiting": "Waiting for the models: {before} before you.",
    "memory": "The machine ran out of memory. The run is as it was: close other programs, then press Step again.",
    "step": "The step failed ({reason}). The run is as it was; press Step to try again.",
    "own": "Write your own text in the sidebar first.",
    "no_recording": "No recorded run is here. Load the models to start a live one.",
    "refused": "This cannot be run: {reason}.",
    "pairs": "The list of pairs cannot be used: {reason}.",
}


def literal(reason: str) -> str:
    """A reason as part of a message, which is read as Markdown: every sign of Markdown is taken as it stands."""
    return re.sub(r"([\\`*_{}\[\]()<>#+\-!|~$:^=])", r"\\\1", reason)


LINKS = {
    "died": "Why did it die?",
    "exact": "Why is it exact?",
    "pays": "Does it pay?",
    "cards": "Five cards, one round",
}
SPEEDS = {0.5: "½×", 1.0: "1×", 2.0: "2×", 4.0: "4×"}
LAYOUT = {
    "speed": "How fast Play goes on: press for the next speed",
    "large": "Large",
    "panel": "Panel",
}
PANELS = {"coin": "Coin", "place": "Place", "exact": "Why exact", "pays": "Price", "tally": "Tally"}

CARDS_RECORDING = "sampling"
CARD = {
    "count": "Card {number} of {of}",
    "next": "Next card",
    "close": "Close",
    "some_draft": "the next draft that goes",
}
CARDS = {
    "guess": {
        "title": "It guesses",
        "text": "The small drafter writes a few tokens ahead, one after the other. That is cheap, and it may be wrong: "
        "the target has not been asked yet.",
        "task": "Press Step until all {count} drafts wait.",
        "reached": "All {count} drafts wait with a question mark. Step on: the target reads them.",
    },
    "read": {
        "title": "One read, {answers} answers",
        "text": "The target reads its weights once and says what it wants after every draft. Moving the weights is "
        "what takes the time on a GPU, so {answers} answers cost hardly more than one there; on a CPU they cost more.",
        "task": "Press Step: the read.",
        "reached": "There they are, all at once. Step on: each draft gets its verdict.",
    },
    "coin": {
        "title": "Throw the coin",
        "text": "A draft stays for sure where the target wants it at least as much as the drafter did. Where it wants "
        "it less, a coin decides: inside the green it stays.",
        "task": "Step until {draft} goes. Then drag its pin into the green, so that {draft} lives.",
        "reached": "With that coin {draft} would have lived. It was a what-if: the run stays as it was. Step on.",
    },
    "refill": {
        "title": "Refill the gaps: exactly what the target wants",
        "text": "What goes is replaced from what the target wants more than the drafter offered. The overflow and the "
        "gaps are of the same size, so the refill always fits.",
        "task": "Step to the correction, then press “deal 100,000 times” under Why exact.",
        "reached": "Every column ends where the target wants it, whoever drafted. Step on.",
    },
    "price": {
        "title": "Price and yield: find a gamma that loses",
        "text": "Drafts cost reads of the drafter, and a wider read of the target may cost more too. It pays only when "
        "a round brings more tokens than it costs reads. “Does it pay?” prices that, and the tally measures it.",
        "task": "Go to the end of the run with the slider, then move gamma up until the price says that it loses.",
        "reached": "It loses: more drafts cost more reads, and bring hardly more tokens. Try a smaller gamma, or "
        "another prompt: copies from a repetitive text pay.",
    },
}

GUMBEL: dict[str, Any] = {
    "lead": "One noise, two models: both race with the same random distances. So the drafter changes how fast the text "
    "comes, and never what it says.",
    "title": "The race",
    "recorded": "recorded",
    "measured": "measured here",
    "file": "from a file",
    "race": "What races",
    "sources": {"gumbel": "a Gumbel run", "decode": "the run on Decode", "hand": "a few tokens"},
    "pair": "Two distributions",
    "place": "place of the text, of {last}",
    "place.drafted": "place of the text: {count} of {last} had a draft",
    "nothing": "what is here",
    "noise": "noise (seed)",
    "noise.help": "0: the noise that the run had. Any other number is new noise for this place, the same each time.",
    "noise.hand": "Any number: the same noise each time.",
    "new": "New noise",
    "hundred": "100 more",
    "happened": "As it happened",
    "races.title": "The race between a few tokens",
    "family": "Along",
    "match_seed": "seed of the races",
}
TEXTS: dict[str, Any] = {
    "title": "Swap the drafter, change gamma: does the text stay?",
    "same": "the target’s own text, byte for byte",
    "differs": "another text",
    "reads": "reads",
    "bar": "reads of the target, beside those of the target alone",
    "gamma": "gamma γ",
    "alone": "no drafts",
    "common": "both begin",
    "hint": "Press two cells to compare their texts.",
    "text_one": "Compare",
    "text_two": "with",
    "table": "as a table",
    "asked": "Prompt: {prompt}",
    "prompt": "prompt",
    "seed": "seed",
    "formula": "text = f(prompt, target, its temperature and filters, seed): no drafter and no gamma in it\n"
    "the token at n = argmax_x (log p_x + g_x(seed, n))",
}
