"""Results as JSON and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from voice_agent.bench.measure import Figures, Heard, Reported, Summary, figures, stage_shares, summarise
from voice_agent.bench.run import CallResult

LATE_MICROPHONE = 0.02
"""Seconds; beyond, the caller itself was short of CPU and its figures are worse than the agent."""


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """What an agent of our own used while the calls ran."""

    cpu_seconds: float
    wall_seconds: float
    peak_rss: int
    """Bytes, since the process began."""
    ready_seconds: float
    exit_code: int | None


def difference_ms(heard: Heard, reported: Reported | None) -> float | None:
    """What the agent's own figure leaves out: positive if the caller waited longer than the agent says."""
    inside = None if reported is None else reported.report.get("voice_to_voice_ms")
    if heard.voice_to_voice is None or inside is None:
        return None
    return round(heard.voice_to_voice * 1e3 - float(inside), 1)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 1)


def _pairs(calls: Sequence[CallResult]) -> list[tuple[Heard, Reported | None]]:
    return [pair for call in calls for pair in zip(call.heard, call.reports, strict=True)]


def _compared(calls: Sequence[CallResult]) -> list[tuple[Heard, Reported]]:
    """Lines whose waiting was measured on both sides; the same lines as `Summary.voice_to_voice`."""
    return [
        (heard, reported)
        for heard, reported in _pairs(calls)
        if reported is not None and difference_ms(heard, reported) is not None
        if not heard.interrupted and heard.cut_in is None
    ]


def as_json(url: str, calls: Sequence[CallResult], agent: AgentUsage | None) -> dict[str, Any]:
    compared = _compared(calls)
    stages = stage_shares(reported.report for _, reported in compared)
    return {
        "url": url,
        "calls": [_call_json(call) for call in calls],
        "summary": asdict(summarise([heard for call in calls for heard in call.heard])),
        "agent_reports": {
            "lines": len(compared),
            "voice_to_voice_ms": asdict(_inside(compared)),
            "difference_ms": asdict(_differences(compared)),
            "stages": {name: {"median_ms": ms, "share": round(share, 3)} for name, (ms, share) in stages.items()},
        },
        "agent_process": None if agent is None else asdict(agent),
    }


def _call_json(call: CallResult) -> dict[str, Any]:
    return {
        "session_id": call.session_id,
        "connect_ms": _ms(call.connect_seconds),
        "length_s": round(call.length, 2),
        "caller_worst_delay_ms": _ms(call.microphone_delay),
        "turns": [_turn_json(call, heard, rep) for heard, rep in zip(call.heard, call.reports, strict=True)],
        "agent_speech_s": [[round(s.start - call.began, 3), round(s.end - call.began, 3)] for s in call.segments],
    }


def _turn_json(call: CallResult, heard: Heard, reported: Reported | None) -> dict[str, Any]:
    return {
        "id": heard.line.id,
        "tag": heard.line.tag,
        "onset_s": round(heard.line.onset - call.began, 3),
        "end_s": round(heard.line.end - call.began, 3),
        "voice_to_voice_ms": _ms(heard.voice_to_voice),
        "difference_ms": difference_ms(heard, reported),
        "missing": heard.missing,
        "cut_in_ms": _ms(heard.cut_in),
        "interrupted": heard.interrupted,
        "stop_ms": _ms(heard.stop),
        "talked_over_ms": _ms(heard.talked_over),
        "reply_s": round(heard.reply_length, 2),
        "agent_report": None if reported is None else reported.report,
    }


def _inside(compared: Sequence[tuple[Heard, Reported]]) -> Figures:
    return figures(float(reported.report["voice_to_voice_ms"]) / 1e3 for _, reported in compared)


def _differences(compared: Sequence[tuple[Heard, Reported]]) -> Figures:
    found = (difference_ms(heard, reported) for heard, reported in compared)
    return figures(None if value is None else value / 1e3 for value in found)


def call_table(call: CallResult, number: int) -> str:
    """One row per line: the waiting heard here, the agent's own figure, their difference, the agent's stages."""
    stages = next((list(r.report["stages_ms"]) for r in call.reports if r and r.report.get("stages_ms")), [])
    widths = [max(7, len(stage)) for stage in stages]
    head = f"{'line':<18} {'tag':<6} {'heard':>6} {'agent':>6} {'diff':>6}  "
    head += "  ".join(f"{stage:>{width}}" for stage, width in zip(stages, widths, strict=True))
    rows = [
        f"call {number}: {call.session_id}, {call.length:.0f} s, media after {call.connect_seconds * 1e3:.0f} ms",
        head,
    ]
    for heard, reported in zip(call.heard, call.reports, strict=True):
        report = {} if reported is None else reported.report
        spent = report.get("stages_ms", {})
        row = f"{heard.line.id:<18.18} {heard.line.tag:<6} {_cell(_ms(heard.voice_to_voice))} "
        row += f"{_cell(report.get('voice_to_voice_ms'))} {_cell(difference_ms(heard, reported))}  "
        row += "  ".join(_cell(spent.get(stage), width) for stage, width in zip(stages, widths, strict=True))
        rows.append(f"{row}  {_remarks(heard)}".rstrip())
        if report.get("user_text"):
            rows.append(f"{'':<18} understood: {report['user_text']}")
    return "\n".join(rows)


def _cell(value: float | None, width: int = 6) -> str:
    return f"{'-' if value is None else format(value, '.0f'):>{width}}"


def _remarks(heard: Heard) -> str:
    remarks = []
    if heard.stop is not None and heard.talked_over is not None:
        remarks.append(f"stopped after {heard.stop * 1e3:.0f} ms, talked over {heard.talked_over * 1e3:.0f} ms")
    elif heard.line.barge:
        remarks.append("came when the agent was silent")
    if heard.cut_in is not None:
        remarks.append(f"CUT IN {heard.cut_in * 1e3:.0f} ms before the end")
    if heard.missing:
        remarks.append("NO REPLY")
    return ", ".join(remarks)


def summary_table(calls: Sequence[CallResult], agent: AgentUsage | None) -> str:
    summary = summarise([heard for call in calls for heard in call.heard])
    compared = _compared(calls)
    rows = [
        f"{len(calls)} calls, {summary.lines} lines",
        f"{'milliseconds':<36}{'n':>4}{'median':>8}{'p95':>8}{'max':>8}",
    ]
    rows.append(_figure_row("voice to voice, heard by the caller", summary.voice_to_voice))
    rows += [_figure_row(f"  {tag}", found) for tag, found in summary.by_tag.items()]
    rows.append(_figure_row("  after a barge-in", summary.after_barge_in))
    rows.append(_figure_row("the agent's own figure", _inside(compared)))
    rows.append(_figure_row("difference", _differences(compared)))
    stages = stage_shares(reported.report for _, reported in compared)
    rows += [f"  {stage:<34}{'':>4}{ms:>8.0f}  {share:>5.0%} of its median" for stage, (ms, share) in stages.items()]
    rows.append(_figure_row("barge-in: stopped after", summary.stop))
    rows.append(_figure_row("barge-in: talked over", summary.talked_over))
    rows += _name_rows(summary)
    worst = max((call.microphone_delay for call in calls), default=0.0)
    if worst > LATE_MICROPHONE:
        rows.append(f"the caller itself was late by up to {worst * 1e3:.0f} ms: this machine was short of CPU")
    if agent is not None:
        cores = agent.cpu_seconds / agent.wall_seconds if agent.wall_seconds else 0.0
        rows.append(
            f"agent process: {agent.cpu_seconds:.1f} CPU s in {agent.wall_seconds:.1f} s ({cores:.2f} cores), "
            f"peak {agent.peak_rss / 2**20:.0f} MiB, ready after {agent.ready_seconds:.1f} s, "
            f"exit code {agent.exit_code}"
        )
    return "\n".join(rows)


def _figure_row(name: str, found: Figures) -> str:
    cells = "".join(_cell(value, 8) for value in (found.median, found.p95, found.max))
    return f"{name:<36.36}{found.n:>4}{cells}"


def _name_rows(summary: Summary) -> list[str]:
    named = (
        ("no reply", summary.missing),
        ("cut in", summary.cut_ins),
        ("barge-in met silence", summary.not_interrupting),
    )
    return [f"{name}: {len(lines)}{' (' + ', '.join(lines) + ')' if lines else ''}" for name, lines in named]
