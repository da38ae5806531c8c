"""Reports as one HTML file that can be sent to somebody: no script, nothing to load, light and dark.

Everything that comes from a trace is text to the page and escaped where it enters.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from typing import Any

from voice_agent.core.latency import STAGES
from voice_agent.report.figures import PERCENTILES, outer_note, summary
from voice_agent.report.page_style import STYLE
from voice_agent.report.reading import CallReport

NAMES = {
    "endpointing": "noticing the pause",
    "recognition": "recognition",
    "first_token": "first token",
    "first_clause": "first clause",
    "synthesis": "synthesis",
    "hold": "waiting for the endpoint",
    "send": "sending",
}
"""The stages in words for somebody who has not read the documentation."""

Turn = dict[str, Any]


def page(calls: Sequence[CallReport]) -> str:
    """The whole document. All waterfalls share one scale, so that bars can be compared across calls."""
    figures = summary(calls)
    longest = max((_extent(turn) for call in calls for turn in call.turns), default=0.0) or 1.0
    count = f"{len(calls)} call{'' if len(calls) == 1 else 's'}, {figures['turns']} turns"
    body = [
        "<h1>Where the time went</h1>",
        f"<p>{count}, {figures['answered']} answered, {figures['interrupted']} interrupted, "
        f"{figures['over_budget']} over budget, {figures['gaps']} gaps while speaking. "
        "Times are milliseconds from the caller's last sound to the first sound of the answer.</p>",
        _summary(figures),
        _legend(),
        *(_call(call, longest) for call in calls),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>Voice agent: {escape(count)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


def _summary(figures: dict[str, Any]) -> str:
    columns = ["", "n", *(f"p{number}" for number in PERCENTILES), "max", "budget", "share of budget"]
    rows = [_summary_row("voice to voice", "", figures["voice_to_voice_ms"])]
    rows += [_summary_row(NAMES[stage], stage, figures["stages_ms"][stage]) for stage in STAGES]
    note = f"<p class=note>{escape(outer_note(figures['answered']))}</p>"
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in columns)
    return f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{note}"


def _summary_row(name: str, stage: str, found: dict[str, Any]) -> str:
    numbers = [found["n"], *(found[f"p{number}"] for number in PERCENTILES), found["max"], found["budget_ms"]]
    cells = "".join(f"<td>{_ms(value)}</td>" for value in numbers)
    share = found["share_of_budget"]
    width = 0.0 if share is None else min(1.0, share) * 100
    meter = f"<span class=meter><i class='{stage or 'whole'}' style='width:{width:.1f}%'></i></span>"
    shown = "–" if share is None else f"{share:.0%}"
    return f"<tr><th scope=row>{_dot(stage)}{escape(name)}</th>{cells}<td class=share>{shown} {meter}</td></tr>"


def _legend() -> str:
    items = "".join(f"<li>{_dot(stage)}{escape(NAMES[stage])}</li>" for stage in STAGES)
    return f"<ul class=legend>{items}<li><span class=mark></span>budget</li></ul>"


def _call(call: CallReport, longest: float) -> str:
    when = ""
    if call.began is not None:
        when = time.strftime(", %Y-%m-%d %H:%M:%S UTC", time.gmtime(max(0.0, min(call.began, 4e9))))
    ended = call.end_reason or "the trace does not say why it ended"
    turns = "".join(_turn(turn, longest) for turn in call.turns) or "<p>No turns.</p>"
    return (
        f"<section><h2>Call <code>{escape(call.session_id)}</code></h2>"
        f"<p class=note>{escape(ended)}{when}</p>{turns}</section>"
    )


def _turn(turn: Turn, longest: float) -> str:
    total = turn["voice_to_voice_ms"]
    said = f"<p><b>caller</b> {escape(turn['user_text'] or '–')}</p>"
    cut = " <em>cut off</em>" if turn["interrupted"] else ""
    if gaps := turn.get("gaps", 0):
        cut += f" <em>{gaps} gap{'s' if gaps > 1 else ''} in the sound</em>"
    heard = f"<p><b>agent</b> {escape(turn['heard_text'] or '(nothing was heard)')}{cut}</p>"
    if total is None:
        return f"<article><h3>Turn {turn['turn']}</h3>{said}{heard}<p class=note>not answered aloud</p></article>"
    over = " class=over" if total > turn["budget_ms"] else ""
    head = f"<h3>Turn {turn['turn']} <span{over}>{total:.0f} ms</span> of {turn['budget_ms']:.0f}</h3>"
    return f"<article>{head}{said}{_waterfall(turn, longest)}{heard}</article>"


def _waterfall(turn: Turn, longest: float) -> str:
    """Each stage begins where the one before ended; a row for each that took time, so that names have room."""
    rows: list[str] = []
    reached = 0.0
    budget = min(100.0, turn["budget_ms"] / longest * 100)
    for stage in STAGES:
        spent = turn["stages_ms"][stage]
        if spent > 0:
            left, width = reached / longest * 100, spent / longest * 100
            rows.append(
                f"<li><span class=name>{escape(NAMES[stage])}</span><span class=track>"
                f"<i class={stage} style='left:{left:.2f}%;width:{width:.2f}%'></i>"
                f"<u style='left:{budget:.2f}%'></u></span><span class=ms>{spent:.0f}</span></li>"
            )
        reached += max(0.0, spent)
    return f"<ol class=waterfall>{''.join(rows)}</ol>"


def _extent(turn: Turn) -> float:
    """How far to the right a turn's drawing reaches."""
    if turn["voice_to_voice_ms"] is None:
        return 0.0
    stages: dict[str, float] = turn["stages_ms"]
    return max(sum(max(0.0, stages[stage]) for stage in STAGES), float(turn["budget_ms"]))


def _dot(stage: str) -> str:
    return f"<span class='dot {stage}'></span>" if stage else ""


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"
