"""A notice that must be heard, then questions.

    python examples/announcement.py            then open http://127.0.0.1:8080 and try to talk over the notice

Nothing the caller says stops the notice; it is understood when the notice is over and answered then. The invitation
after it is an ordinary text: talk over it and it stops.
"""

from __future__ import annotations

import sys

from voice_agent import Agent, Call, CallBegan

NOTICE = "Before we begin: this call is recorded, and the recording is deleted after thirty days."
INVITATION = "Now, what would you like to know about your order? I can look up deliveries, returns and invoices."

agent = Agent(
    "You are the order desk of a book shop. Everything you write is read aloud. Answer in one short spoken sentence.",
    max_reply_tokens=60,
)


@agent.on(CallBegan)
async def announce(call: Call, event: CallBegan) -> None:
    await call.say(NOTICE, interruptible=False)
    # If the caller asked something meanwhile, that is answered first; then nobody has the floor and this is said.
    said = await call.say(INVITATION)
    print(f"{call.id}: invitation {'cut off' if said.interrupted else 'heard'}: {said.heard}", flush=True)


if __name__ == "__main__":
    sys.exit(agent.run())
