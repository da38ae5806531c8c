"""Where the time of every turn went, as CSV: one row per answered turn of every call, ready for a spreadsheet.

    python examples/latency_csv.py latency.csv         then talk at http://127.0.0.1:8080; Ctrl-C when done

Columns are milliseconds. The stages follow each other and sum to `voice_to_voice`, the time between the caller's last
sound and the agent's first one; `hold` is a reply that was ready and waited for the end of the turn.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from voice_agent import Agent, Call, TurnReported

STAGES = ("endpointing", "recognition", "first_token", "first_clause", "synthesis", "hold", "send")
HEADER = ("call", "turn", "interrupted", "voice_to_voice", *STAGES)

agent = Agent()
out = Path(sys.argv[1] if __name__ == "__main__" and len(sys.argv) > 1 else "latency.csv")


@agent.on(TurnReported)
def row(call: Call, event: TurnReported) -> None:
    if event.voice_to_voice_ms is None:
        return  # nobody heard any of that reply
    new = not out.exists()
    with out.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(HEADER)
        stages = [event.stages_ms[stage] for stage in STAGES]
        writer.writerow([call.id, event.turn, int(event.interrupted), event.voice_to_voice_ms, *stages])


if __name__ == "__main__":
    sys.exit(agent.run())
