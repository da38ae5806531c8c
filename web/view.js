// Draws transcript, floors and problems. Lines are made once and then changed in place, so that the live region
// announces each line and each clause once and not every time a word changes or is heard.

import { heardParts } from "./conversation.js";
import { byId, make, setText } from "./dom.js";

const FLOOR_WORDS = {
  silent: "silent", speaking: "speaking", paused: "pausing",
  idle: "listening", thinking: "thinking", yielding: "yielding",
};

// What the page says of itself while there is no call: [headline, hint].
const PAGE_WORDS = {
  idle: ["Talk with the agent", "Press the button, allow the microphone, and talk."],
  connecting: ["Connecting", "The browser may ask for the microphone."],
  reconnecting: ["Connecting again", "What was said stays here."],
  ended: ["Call ended", "Words and timing stay here until the next call."],
  failed: ["Not connected", "See below for the way out."],
};

const ACTIONS = { type: "Type instead", play: "Play the sound", reload: "Reload the page", fresh: "New call" };

export class TranscriptView {
  constructor() {
    this.list = byId("transcript");
    this.lines = new Map(); // entry -> its elements
  }

  clear() {
    this.lines.clear();
    this.list.replaceChildren();
    byId("transcript-empty").hidden = false;
  }

  show(transcript) {
    const following = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 40;
    byId("transcript-empty").hidden = transcript.length > 0;
    for (const entry of transcript) {
      if (!this.lines.has(entry)) this.add(entry);
      const line = this.lines.get(entry);
      if (entry.role === "agent") this.showAgent(entry, line);
      else this.showPlain(entry, line);
    }
    if (following) this.list.scrollTop = this.list.scrollHeight;
  }

  add(entry) {
    const text = make("p", { class: "words" });
    const item = make("div", { class: `line ${entry.role}`, "data-turn": entry.turn ?? "" });
    if (entry.role !== "note") item.append(make("span", { class: "who" }, entry.role === "user" ? "You" : "Agent"));
    item.append(text);
    this.lines.set(entry, { item, text, clauses: [] });
    this.list.append(item);
  }

  showPlain(entry, { item, text }) {
    setText(text, entry.text);
    item.classList.toggle("partial", entry.final === false);
  }

  showAgent(entry, line) {
    heardParts(entry).forEach(([heard, unheard], index) => {
      line.clauses[index] ??= addClause(line.text);
      setText(line.clauses[index].heard, heard);
      setText(line.clauses[index].unheard, unheard);
    });
    line.item.classList.toggle("done", entry.done);
    if (entry.interrupted && !line.note) {
      line.note = make("span", { class: "note" }, "interrupted");
      line.item.append(line.note);
    }
  }
}

function addClause(parent) {
  const heard = make("span", { class: "heard" });
  const unheard = make("span", { class: "unheard" });
  parent.append(make("span", { class: "clause" }, heard, unheard), " ");
  return { heard, unheard };
}

/** What the agent is doing now, as [name, headline, hint]; the name picks the colour. */
function activity({ page, user, agent, muted, silent }) {
  if (page !== "live") return [page, ...PAGE_WORDS[page]];
  if (agent === "yielding") return ["yielding", "Yielding", "It paused to hear whether you want to take over."];
  if (agent === "speaking") return ["speaking", "Speaking", "Talk over it or press Esc to stop it."];
  if (agent === "thinking") return ["thinking", "Thinking", "Your turn is over; the answer is on its way."];
  if (silent) return ["listening", "Waiting for your text", "There is no microphone. Type below; you hear the answer."];
  if (muted) return ["muted", "You are muted", "The agent does not hear you. You can unmute or type."];
  if (user === "speaking") return ["listening", "Listening", "It hears you."];
  if (user === "paused") return ["listening", "Listening", "You paused. It waits to see whether you go on."];
  return ["listening", "Listening", "Go ahead."];
}

export function showActivity(facts) {
  const [name, headline, hint] = activity(facts);
  document.body.dataset.page = facts.page;
  document.body.dataset.now = name;
  setText(byId("activity"), headline);
  setText(byId("activity-hint"), hint);
  const user = facts.muted ? "muted" : facts.user;
  for (const [side, floor] of [["user", user], ["agent", facts.agent]]) {
    byId(`${side}-floor`).dataset.floor = floor;
    setText(byId(`${side}-state`), facts.page === "live" ? (FLOOR_WORDS[floor] ?? floor) : "–");
  }
}

/** `seconds` are left until the server wants to be asked again, or null. */
export function showProblem(problem, seconds = null) {
  const action = ACTIONS[problem?.action];
  byId("problem").hidden = !problem;
  byId("problem").dataset.code = problem?.code ?? "";
  setText(byId("problem-title"), problem?.title ?? "");
  setText(byId("problem-text"), `${problem?.text ?? ""}${waitText(seconds)}`);
  byId("problem-action").hidden = !action;
  setText(byId("problem-action"), action ?? "");
}

function waitText(seconds) {
  if (seconds === null) return "";
  return seconds > 0 ? ` Please try again in ${seconds} s.` : " You can try again now.";
}
