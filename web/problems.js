// What can go wrong, in words for the person in front of the page. A problem is {code, title, text, action, retryAfter}.
// `action` is a way out that the page offers as a button; view.js has its words.

const TYPE = "type";
const WORDS = {
  insecure: ["This page may not use the microphone", "Browsers allow it on https and on localhost only. Open the page there, or type.", TYPE],
  unsupported: ["This browser cannot make calls", "It has no WebRTC. Current versions of Chrome, Edge, Firefox and Safari do."],
  permission: ["The microphone is not allowed", "Allow it for this page in the browser's address bar, then press “Try again”. Or type.", TYPE],
  no_microphone: ["No microphone found", "Plug one in or switch it on, then press “Try again”. Or type.", TYPE],
  microphone_busy: ["The microphone does not start", "Another program may be using it. Close that program, then press “Try again”. Or type.", TYPE],
  unplugged: ["The microphone was unplugged", "The call goes on. Plug it in again, or choose another one in the settings; until then you can type."],
  switched: ["The microphone was unplugged", "The agent now hears another one."],
  device: ["That device does not start", "The one before is still in use. Choose another, or check that it is plugged in."],
  loading: ["The models are still loading", "The call can start as soon as they are ready."],
  busy: ["All lines are taken", "The agent is in as many calls as it can hold."],
  unauthorized: ["This server needs a key", "Open the link or scan the code that the server printed when it started, or add ?key=YOUR_KEY to the address."],
  forbidden: ["The server refused this page", "It accepts its own address only. Open the page under the address that the server printed."],
  unreachable: ["The server does not answer", "Is it still running, and is the network up? Then press “Try again”."],
  no_media: ["The sound does not get through", "No network path for audio was found. A firewall or VPN may be in the way."],
  lost: ["The connection was lost", "Connecting again by itself …"],
  gone: ["The connection did not come back", "Check the network. “Reconnect” goes on with this conversation.", "fresh"],
  playback: ["The browser blocks the sound", "It wants one more click before it lets the page speak.", "play"],
  broke: ["The agent ended the call", "Something failed on its side; the server's log says what. A new call may work."],
  failed: ["The call could not be started", "Reload the page and try again.", "reload"],
};

export class CallProblem extends Error {
  constructor(code, details = {}) {
    const [title, text, action] = WORDS[code] ?? WORDS.failed;
    super(title);
    this.code = code;
    this.title = title;
    this.text = details.message ? `${details.message} ${WORDS[code] ? text : ""}`.trim() : text;
    this.action = action ?? null;
    this.retryAfter = details.retryAfter ?? null;
  }
}

/** Problems that another attempt may find gone. */
export const PASSING = new Set(["lost", "unreachable", "no_media", "busy", "loading", "failed"]);

export function microphoneProblem(error) {
  const codes = {
    NotAllowedError: "permission",
    SecurityError: "permission",
    NotFoundError: "no_microphone",
    OverconstrainedError: "no_microphone",
    NotReadableError: "microphone_busy",
    AbortError: "microphone_busy",
  };
  return new CallProblem(codes[error.name] ?? "microphone_busy");
}

const REFUSED = { 401: "unauthorized", 403: "forbidden", 503: "busy" };

/** The problem a refused offer tells of; `response` is not ok. */
export async function refusalProblem(response) {
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch {
    // Not our JSON: a proxy answered. The status is all there is.
  }
  const retryAfter = Number(response.headers.get("Retry-After")) || null;
  const code = error.code === "loading" ? "loading" : REFUSED[response.status];
  if (code) return new CallProblem(code, { retryAfter });
  return new CallProblem("failed", { message: error.message ?? `The server answered ${response.status}.` });
}

