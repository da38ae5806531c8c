"""A shop assistant that writes down what was said: one JSON line per turn, for whoever fills the orders.

python examples/shop.py                    then open http://127.0.0.1:8080 and ask for apples
python examples/shop.py orders.jsonl       the lines go to a file instead of the terminal
VOICE_AGENT_PROFILE=small python examples/shop.py
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from voice_agent import Agent, Call, CallBegan, CallEnded, ReplyEnded, TurnEnded

PROMPT = """\
You answer the phone of Green's, a small shop that sells apples, pears and plums, each for two pounds a bag.
Everything you write is read aloud. Answer in one short spoken sentence, without lists.
"""

agent = Agent(PROMPT, greeting="Green's fruit shop, hello!", max_reply_tokens=60)
log = Path(sys.argv[1]) if __name__ == "__main__" and len(sys.argv) > 1 else None


def write(call: Call, **fields: object) -> None:
    line = json.dumps({"call": call.id, "at": round(time.time(), 1), **fields}, ensure_ascii=False)
    if log is None:
        print(line, flush=True)
    else:
        with log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


@agent.on(CallBegan)
def begin(call: Call, event: CallBegan) -> None:
    call.data["turns"] = 0  # `data` is ours: whatever we want to remember of this call


@agent.on(TurnEnded)
def caller_said(call: Call, event: TurnEnded) -> None:
    call.data["turns"] += 1
    write(call, turn=event.turn, caller=event.text)


@agent.on(ReplyEnded)
def agent_said(call: Call, event: ReplyEnded) -> None:
    # `heard` is what reached the caller's ear: a reply that was talked over is logged up to that word.
    write(call, turn=event.turn, agent=event.heard, interrupted=event.interrupted)


@agent.on(CallEnded)
def end(call: Call, event: CallEnded) -> None:
    write(call, ended=event.reason, turns=call.data["turns"])


if __name__ == "__main__":
    sys.exit(agent.run())
