// What can go wrong, in words for the person in front of the page. A problem is {code, title, text, retryAfter?}.

const WORDS = {
  insecure: ["This page may not use the microphone", "Browsers allow it on https pages and on localhost only. Open the page at http://localhost or behind https."],
  unsupported: ["This browser cannot make calls", "It has no WebRTC. Current versions of Chrome, Edge, Firefox and Safari do."],
  permission: ["The microphone is not allowed", "Allow it for this page in the browser's address bar, then start again."],
  no_microphone: ["No microphone found", "Plug one in or switch it on, then start again."],
  microphone_busy: ["The microphone does not start", "Another program may be using it. Close that program, then start again."],
  loading: ["The models are still loading", "The call can start as soon as they are ready."],
  busy: ["All lines are taken", "The agent is in as many calls as it can hold. Please try again shortly."],
  unauthorized: ["This server needs a key", "Open the page with ?key=YOUR_KEY at the end of the address."],
  forbidden: ["The server refused this page", "It accepts its own address only. Open the page under the address that the server printed."],
  unreachable: ["The server does not answer", "Is it still running, and is the network up?"],
  no_media: ["The sound does not get through", "Server and browser agreed on a call, but no network path for audio was found."],
  lost: ["The connection was lost", "The call is over. You can start a new one."],
  playback: ["The browser blocks the sound", "Allow this page to play audio, then start again."],
};

export class CallProblem extends Error {
  constructor(code, details = {}) {
    const [title, text] = WORDS[code] ?? ["Something went wrong", details.message ?? "The call could not be started."];
    super(title);
    this.code = code;
    this.title = title;
    this.text = details.text ?? text;
    this.retryAfter = details.retryAfter ?? null;
  }
}

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

/** The problem a refused offer tells of; `response` is not ok. */
export async function refusalProblem(response) {
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch {
    // Not our JSON: a proxy answered. The status is all there is.
  }
  const retryAfter = Number(response.headers.get("Retry-After")) || null;
  if (response.status === 401) return new CallProblem("unauthorized");
  if (response.status === 403) return new CallProblem("forbidden");
  if (response.status === 503 && error.code === "loading") return new CallProblem("loading", { retryAfter });
  if (response.status === 503) return new CallProblem("busy", { retryAfter });
  return new CallProblem(error.code ?? "refused", { message: error.message ?? `The server answered ${response.status}.` });
}

/** What the server's `progress` says is still to come, as text. */
export function progressText(progress) {
  const loading = Array.isArray(progress?.loading) ? progress.loading : [];
  return loading.length ? `Loading ${loading.join(", ")} …` : "Loading the models …";
}
