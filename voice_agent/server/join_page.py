"""The page for a device that has not joined: it exchanges the link's key, or says what to do. It loads nothing else."""

from __future__ import annotations

import base64
import hashlib

from starlette.responses import Response

_STYLE = """
:root { color-scheme: light dark; }
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 15vh auto; padding: 0 1.5rem; }
"""

_SCRIPT = """
const say = (text) => { document.getElementById("status").textContent = text; };

async function enter() {
  const key = new URLSearchParams(location.hash.slice(1)).get("join");
  if (!key) {
    // A link on another site brings no SameSite=Strict cookie; asked from here, a device that has joined is known.
    if ((await fetch("/", { cache: "no-store" })).ok) location.replace("/");
    return;
  }
  history.replaceState(null, "", location.pathname); // keeps the key out of bookmarks and the history
  say("Joining \\u2026");
  const body = JSON.stringify({ key });
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/join", { method: "POST", headers, body });
  if (answer.ok) location.replace("/");
  else say("This link was used already or has been replaced. Scan the newest code shown where the agent was started.");
}

const tryToEnter = () => enter().catch(() => say("The agent does not answer. Is it still running?"));
addEventListener("hashchange", tryToEnter);
tryToEnter();
"""

_PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Voice agent: join</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>This agent is private</h1>
<p id="status" role="status">Scan the QR code shown where the agent was started with this device, or open the link
below it. Each code lets one device in; the next appears as soon as it was used.</p>
<noscript><p>Joining and talking need JavaScript.</p></noscript>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "WWW-Authenticate": "Bearer",
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_hash(_SCRIPT)}; style-src {_hash(_STYLE)}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


def join_page() -> Response:
    return Response(_PAGE, 401, _HEADERS)
