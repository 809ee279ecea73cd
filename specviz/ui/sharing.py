"""Carrying a run in and out of the page: as a link, or as a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from specviz import trace as traces
from specviz.figures import events
from specviz.figures.text import visible
from specviz.trace import UNSAID, Header, Round, Trace
from specviz.ui import components, controls, recordings, session, words
from specviz.ui.controls import Refused, Wanted
from specviz.ui.recordings import Recording
from specviz.ui.session import FILE, Arrival, Run

MOMENT = "at"
"""The parameter of a link that names a moment: round.event, counted from one."""
KEYS = ("pair", "rule", *controls.RANGES, "drafter", *controls.SWITCHES, "prompt", "detail", *controls.PRICE)
"""The parameters that controls answer to."""
NAMED = 3
"""How many things that a link cannot have are named."""

MAX_BYTES = 5_000_000
MAX_ROUNDS = 1_024
"""Rounds of a file that are shown."""
MAX_DRAFTS, MAX_LISTED, MAX_PROMPT_IDS, MAX_TEXT, MAX_TOKEN = 64, 512, 32_768, 20_000, 1_024
"""What one round, one row and the header of a file may hold: drafts, tokens, ids, characters, bytes of a token."""
PLAIN_WORD = re.compile(r"[\w.+-]{1,40}")
SAFE = re.compile(r"[^A-Za-z0-9_-]+")


# --- links ------------------------------------------------------------------------------------------------------------


def arrival(shown: Recording | None) -> Arrival:
    """What the address asks for; read once, before any control is drawn.

    The controls are set to what they accept of it, also those that are drawn later or not at all; the moment leaves
    the address, where it would soon be wrong.
    """
    if "arrival" not in st.session_state:
        asked = {key: st.query_params[key] for key in (*KEYS, MOMENT) if key in st.query_params}
        unasked = [key for key, raw in asked.items() if not raw]  # a control would take it for no choice
        for key in unasked:
            del asked[key]
        taken = {key: controls.taken(key, raw, shown) for key, raw in asked.items() if key != MOMENT}
        refused = [key for key, value in taken.items() if isinstance(value, Refused)]
        st.session_state.update({key: value for key, value in taken.items() if key not in refused})
        at = asked.get(MOMENT, "")
        at = at if events.ADDRESS.fullmatch(at) else ""
        st.session_state.arrival = Arrival(at, complaints(asked, shown))
        gone = [*unasked, *refused]
        for key in (*gone, MOMENT):
            st.query_params.pop(key, None)
        if gone:
            st.rerun()  # controls are seeded from the address that a run began with
    return st.session_state.arrival


def complaints(asked: dict[str, str], shown: Recording | None) -> str:
    """One sentence about what a link asks for and cannot have, as plain text; empty where all is well.

    ``asked`` holds the raw parameters of an address; those that nobody knows are nobody's business.
    """
    refused = {
        key: value
        for key, raw in asked.items()
        if key in KEYS and isinstance(value := controls.taken(key, raw, shown), Refused)
    }
    if MOMENT in asked and not events.ADDRESS.fullmatch(asked[MOMENT]):
        refused[MOMENT] = Refused(words.LINK["moment.takes"], words.LINK["moment.instead"])
    called = {key: words.LINK["moment"] if key == MOMENT else key.replace("_", " ") for key in refused}
    return refusal({called[key]: (asked[key], value) for key, value in refused.items()})


def refusal(refused: Mapping[str, tuple[str, Refused]]) -> str:
    """One sentence about what a link cannot have: by what it is called, what the link says and what can be had."""
    named = [f"{called} {_quoted(raw)}" for called, (raw, _) in refused.items()]
    if len(named) == 1:
        ((_, only),) = refused.values()
        return words.LINK["one"].format(asked=named[0], takes=only.takes, instead=only.instead)
    if len(named) > NAMED:
        named = [*named[:NAMED], words.LINK["more"].format(count=len(named) - NAMED)]
    return words.LINK["many"].format(asked=f"{', '.join(named[:-1])} and {named[-1]}") if named else ""


def _quoted(raw: str) -> str:
    return raw if PLAIN_WORD.fullmatch(raw) else f"“{visible(raw[:40])}{'…' if len(raw) > 40 else ''}”"


def unlinkable(run: Run) -> str:
    """Why no link can lead to this run; empty where one can."""
    if FILE in (run.recording, run.base):
        return words.LINK["file"]
    opening = recordings.first()
    asked = opening.trace.header.prompt if opening is not None else None
    if run.prompt not in (*words.PRESETS.values(), asked):
        return words.LINK["own"]
    settings = [dict(round_.said) for round_ in run.trace.rounds]
    midway = run.stretched or any(one != settings[0] for one in settings)
    return words.LINK["midway"] if midway or (settings and _differ(settings[0], run)) else ""


def _differ(settings: dict[str, Any], run: Run) -> bool:
    """Whether the controls of a live run have moved on from what its rounds were decoded with."""
    return any(settings.get(name, value) != value for name, value in run.settings.items())


def moment(run: Run, *, story: bool) -> str:
    """The address of the moment under the cursor; empty where the run has none."""
    return events.address(session.view(run, story=story).timeline, run.event) if run.event is not None else ""


def copy_link(run: Run, wanted: Wanted) -> None:
    """The button that copies the link to this run, without what is at its default, and to the moment in the strip."""
    reason = unlinkable(run)
    there = controls.address(run.pair_id, run.settings, run.prompt, run.length, wanted.detail)
    components.copy_link({} if reason else there, moment=MOMENT, reason=reason)


# --- files ------------------------------------------------------------------------------------------------------------


def files(run: Run) -> None:
    """Take the run away as a file, or bring one."""
    wanted = st.session_state.pop("download_wanted", False)
    if wanted:
        st.session_state.downloads = st.session_state.get("downloads", 0) + 1
    components.download(
        words.FILES["download"],
        name=file_name(run),
        content=traces.dump(session.state().run.trace) if wanted else None,
        request=st.session_state.get("downloads", 0),
        on_wanted=_want_download,
    )
    with st.expander(words.FILES["open"]):
        st.file_uploader(
            words.FILES["label"], type="jsonl", max_upload_size=MAX_BYTES // 1_000_000, key="opened", on_change=_open
        )
        if refused := st.session_state.get("refused"):
            st.warning(words.literal(refused))


def _want_download() -> None:
    st.session_state.download_wanted = True


def file_name(run: Run) -> str:
    """A name of safe characters only, whatever the run's settings are."""
    parts = (str(run.settings.get(name, ""))[:40] for name in ("rule", "seed"))
    return "-".join(["specviz", *(safe for part in parts if (safe := SAFE.sub("-", part).strip("-")))]) + ".jsonl"


def _open() -> None:
    """The visitor chose a file, or took it away again."""
    uploaded = st.session_state.get("opened")
    st.session_state.refused = ""
    if uploaded is None:
        return
    try:
        trace, notice = opened(uploaded.getvalue())
    except ValueError as error:
        st.session_state.refused = words.FILES["refused"].format(reason=visible_reason(str(error)))
    else:
        session.open_file(trace, " ".join(filter(None, (notice, _unfit(trace)))))


def _unfit(trace: Trace) -> str:
    """A sentence where the controls cannot stand as the run does."""
    settings = dict(trace.rounds[0].said) if trace.rounds else {}
    fits = {**UNSAID, **controls.fitting(settings)}
    other = [name for name in fits if trace.rounds and settings.get(name) != fits[name]]
    if other and all(name.startswith("stop") for name in other):
        return words.FILES["stops"]
    return words.FILES["unfit"] if other else ""


def visible_reason(reason: str) -> str:
    """A reason that may quote the file: one line, nothing hidden in it."""
    shown = " ".join(visible(word) for word in reason[:300].split())
    return shown[:1].upper() + shown[1:]


def opened(content: bytes) -> tuple[Trace, str]:
    """The run in a file, cut to what a page can show, and a sentence about what was cut.

    Raises:
        ValueError: the file is too large, no trace, or a round of it cannot be told; names the line.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(words.FILES["size"].format(size=len(content) / 1e6))
    try:
        text = content.decode("utf-8-sig")  # some editors begin a file with a mark of its encoding
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        raise ValueError(f"line {line}: expected UTF-8 text, got the byte 0x{content[error.start]:02x}") from None
    whole = traces.load(text)
    trace = whole.cut(MAX_ROUNDS)
    lines = [number for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    for number, problem in zip(lines, (_wrong_header(trace.header), *map(_wrong_round, trace.rounds)), strict=False):
        if problem:
            raise ValueError(f"line {number}: {problem}")
    rounds = len(whole.rounds)
    cut = words.FILES["rounds"].format(rounds=rounds, shown=MAX_ROUNDS) if rounds > MAX_ROUNDS else ""
    return trace, cut


def _wrong_header(header: Header) -> str:
    if len(header.prompt_ids) > MAX_PROMPT_IDS:
        return f"the prompt has {len(header.prompt_ids):,} tokens, at most {MAX_PROMPT_IDS:,} can be shown"
    texts = [text or "" for text in (header.prompt, header.pair, header.drafter, header.device, header.dtype)]
    longest = max(map(len, texts))
    if longest > MAX_TEXT:
        return f"a text has {longest:,} characters, at most {MAX_TEXT:,} can be shown"
    return _halved(texts) or _wrong_bytes(header.prompt_bytes or ())


def _wrong_round(round_: Round) -> str:
    """Why the page cannot tell this round."""
    if not round_.drafts and round_.closing is None:
        return "the round has neither drafts nor a closing token"
    if len(round_.drafts) > MAX_DRAFTS:
        return f"the round has {len(round_.drafts)} drafts, at most {MAX_DRAFTS} can be shown"
    fates = [draft.fate or "unjudged" for draft in round_.drafts]
    kept, judged = fates.count("kept"), len(fates) - fates.count("unjudged")
    if fates != ["kept"] * kept + ["rejected"] * (judged - kept) + ["unjudged"] * (len(fates) - judged) or (
        judged > kept + 1
    ):
        return "the fates of a round are kept ones, then at most one rejected, then unjudged ones"
    closing = () if round_.closing is None else (round_.closing.id,)
    if round_.emitted != (*(draft.id for draft in round_.drafts[:kept]), *closing):
        return "the round emits other tokens than its kept drafts and its closing token"
    if any(len(row.tokens) > MAX_LISTED for row in round_.rows()):
        return f"a row lists more than {MAX_LISTED} tokens"
    wrong = next((name for name, kinds in SETTINGS.items() if not _is(round_, name, kinds)), None)
    if wrong is not None:
        return f"the setting {wrong} is {(round_.settings or {}).get(wrong)!r:.60}"
    said = [value for value in (round_.settings or {}).values() if isinstance(value, str)]
    return _halved(said) or _wrong_bytes(
        [token.bytes for row in round_.rows() for token in row.tokens if token.bytes is not None]
    )


SETTINGS: dict[str, tuple[type, ...]] = {
    "rule": (str,),
    "drafter": (str,),
    "gamma": (int,),
    "top_k": (int,),
    "seed": (int,),
    "temperature": (int, float),
    "drafter_temperature": (int, float),
    "top_p": (int, float),
    "ngram": (int,),
    "stop_below": (int, float),
    "stop_above": (int, float),
}
"""What a round's settings may be, where they are said."""


def _is(round_: Round, name: str, kinds: tuple[type, ...]) -> bool:
    value = (round_.settings or {}).get(name)
    return value is None or (type(value) in kinds and not (type(value) is int and abs(value) >= 2**63))


def _halved(texts: Sequence[str]) -> str:
    """JSON can hold half a character, which no page can show."""
    return "a text holds half a character" if any("\ud800" <= sign <= "\udfff" for sign in "".join(texts)) else ""


def _wrong_bytes(texts: Sequence[str]) -> str:
    longest = max(map(len, texts), default=0) // 2
    return f"a token has {longest:,} bytes, at most {MAX_TOKEN:,} can be shown" if longest > MAX_TOKEN else ""
