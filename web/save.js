// What can be kept of a call: the words, the timing report and the trace, to copy or to download.

import { authorization } from "./call.js";
import { heardParts } from "./conversation.js";
import { byId, make, setText } from "./dom.js";

const KINDS = [
  ["transcript", "Transcript", "text/plain", "txt"],
  ["report", "Report", "application/json", "json"],
  ["trace", "Trace", "application/x-ndjson", "jsonl"],
];

export class SavePane {
  /** `source()` gives the conversation to keep; `key` opens the server's records. */
  constructor(source, key) {
    this.source = source;
    this.key = key;
    this.buttons = [];
    for (const kind of KINDS) this.addRow(kind);
  }

  addRow(kind) {
    const [, title] = kind;
    const copy = make("button", { type: "button", "aria-label": `Copy ${title.toLowerCase()}` }, "Copy");
    const download = make("button", { type: "button", "aria-label": `Download ${title.toLowerCase()}` }, "Download");
    copy.addEventListener("click", () => this.act(kind, copyText, "copied"));
    download.addEventListener("click", () => this.act(kind, (text) => offerFile(text, kind, this.source()), "downloaded"));
    this.buttons.push(copy, download);
    byId("save-list").append(make("li", {}, make("span", {}, title), copy, download));
  }

  show({ transcript, sessions }) {
    const empty = transcript.length === 0 && sessions.length === 0;
    for (const button of this.buttons) button.disabled = empty;
  }

  async act(kind, deliver, done) {
    const [name, title] = kind;
    try {
      await deliver(await this.make(name));
      setText(byId("save-told"), `${title} ${done}.`);
    } catch (error) {
      setText(byId("save-told"), `${title} not ${done}: ${error.message}`);
    }
  }

  async make(name) {
    const conversation = this.source();
    if (name === "transcript") return transcriptText(conversation);
    if (name === "report") return `${JSON.stringify(await this.report(conversation), null, 2)}\n`;
    return traceText(conversation, await this.records(conversation, "history"));
  }

  /** The server's reports; what it has forgotten already is taken from what the page saw. */
  async report(conversation) {
    const calls = await this.records(conversation, "report");
    if (calls.length && calls.every(Boolean)) return { calls };
    return { calls: [{ session_id: conversation.state.session_id, turns: conversation.reports }] };
  }

  /** One record per connection; null where the server does not have it. */
  records({ sessions }, what) {
    return Promise.all(sessions.map(async (id) => {
      try {
        const address = `api/sessions/${encodeURIComponent(id)}/${what}`;
        const response = await fetch(address, { headers: authorization(this.key), cache: "no-store" });
        return response.ok ? await response.json() : null;
      } catch {
        return null;
      }
    }));
  }
}

export function transcriptText({ transcript }) {
  return transcript.map((entry) => {
    if (entry.role === "note") return `(${entry.text})\n`;
    if (entry.role === "user") return `You: ${entry.text}\n`;
    const parts = heardParts(entry);
    const heard = parts.map(([words]) => words.trim()).filter(Boolean).join(" ");
    const unheard = parts.map(([, words]) => words.trim()).filter(Boolean).join(" ");
    return `Agent: ${heard}${unheard ? ` [not heard: ${unheard}]` : ""}\n`;
  }).join("");
}

/** One JSON object a line, of the kinds that `voice-agent report` reads, with every event the page got. */
export function traceText({ sessions, events, reports, state }, histories) {
  const lines = [{ kind: "call", session_id: sessions[sessions.length - 1] ?? "", made_by: "page", sessions }];
  for (const { call, event } of events) lines.push({ kind: "message", call, message: event });
  for (const history of histories) if (history) lines.push({ kind: "history", history });
  for (const report of reports) lines.push({ kind: "report", report });
  if (state.ended) lines.push({ kind: "end", reason: state.ended });
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text); // not there but on https and localhost
  } catch {
    throw new Error("the browser does not allow it; download it instead");
  }
}

function offerFile(text, [name, , type, suffix], { state }) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: address, download: `voice-agent-${state.session_id ?? "call"}-${name}.${suffix}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
