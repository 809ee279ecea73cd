"""The words of the pages: labels, hints, messages. Sentences about a run are in :mod:`specviz.figures.sentences`."""

from __future__ import annotations

import re
from typing import Any

LEAD = (
    "A small drafter guesses a few tokens; one read of the big target judges them all. The text stays the target’s own."
)

PICKED = (
    "A recorded run, picked because its first rounds show every fate. "
    "A typical text: shared {alpha:.2f} (alpha over 40 prompts, recorded)."
)

STRIP = {
    "prompt": "The prompt: given, not judged.",
    "empty": "Nothing is written yet. Press Step: the drafter guesses, the target judges.",
    "all": "show all drafts",
    "fewer": "show fewer drafts",
    "pinned": "following paused · return",
}
COIN = {
    "stays": "stays",
    "goes": "goes",
    "coin": "coin",
    "target": "target:",
    "not_yet": "not asked yet",
    "table": "as a table",
}
PLACE: dict[str, Any] = {
    "both": "both",
    "only_target": "only the target",
    "only_drafter": "only the drafter",
    "target": "the target, p",
    "drafter": "the drafter, q",
    "shared": "shared",
    "logits": ("target’s logit", "drafter’s"),
    "table": "as a table",
}
TALLY = {"title": "Tally · {rounds} so far", "none": "Tally", "table": "as a table"}

PRESETS = {
    "chat": "Tell me a story about a dragon who was afraid of fire.",
    "code": "Write a Python function that checks whether a number is prime.",
    "list": "List ten animals that live in the sea.",
    "repetition": "Repeat this sentence five times: The quick brown fox jumps over the lazy dog.",
    "translation": "Translate into French: The weather is beautiful today and we are going to the beach.",
}
OWN = "own text"
RECORDED = "recorded"
OWN_LABEL = "Your text, up to 2,000 characters"
OWN_PLACEHOLDER = "What should the models answer?"

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
DETAILS = ("Story", "Numbers", "Formulas")

CONTROLS = {
    "pair": "Pair",
    "rule": "Rule",
    "gamma": "gamma γ: drafts a round",
    "gamma.help": "The target checks them in one read of gamma + 1 rows. 0: no drafts, plain decoding.",
    "temperature": "temperature",
    "temperature.linked": "moves both; p changes, so the text’s law changes",
    "temperature.free": "the target’s; p changes, so the text’s law changes",
    "temperature.greedy": "greedy is temperature 0",
    "temperature.zero": "now greedy: every p is 0 or 1",
    "linked": "drafter at the same temperature",
    "drafter_temperature": "drafter temperature",
    "drafter_temperature.note": "moves q only: speed changes, the law does not",
    "drafter_temperature.gumbel": "moves q only: speed changes, not even the text does",
    "top_k": "top-k",
    "top_k.help": "Keep the k likeliest tokens of both models. 0 keeps all.",
    "top_p": "top-p",
    "top_p.help": "Keep the likeliest tokens of both models up to this mass.",
    "length": "length",
    "length.help": "Tokens to write at most.",
    "seed": "Seed",
    "prompt": "Prompt",
    "more": "more",
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
    "changed": "This is a recorded run with other settings. Changed: {changes}.",
    "pair": "This run was decoded by another pair. Changed: {changes}.",
    "continue": "Continue live from this round",
    "start": "Start a live run",
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
    "speed": "Speed of Play",
    "large": "Large",
    "large.help": "For a projector: no sidebar, the strip, the sentence and one panel.",
    "panel": "Panel",
}
PANELS = {"coin": "The coin", "place": "The place", "exact": "Why exact", "tally": "Tally"}

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
        "what takes the time, so {answers} answers cost hardly more than one where memory is the limit.",
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
        "text": "Drafts cost reads of the drafter, and a wider read of the target costs more too. It pays only when "
        "enough drafts stay. The tally measures it, beside the target alone.",
        "task": "Go to the end of the run and look at the tally: does this gamma lose? If not, try a larger one.",
        "reached": "Slower than the target alone, measured. Drafts die early, or reads here do not wait for memory. "
        "Try a smaller gamma.",
    },
}
