// Draws transcript and floors. Lines are made once and then changed in place, so that the live region announces each
// line and each clause once and not every time a word changes or is heard.

import { heardParts } from "./conversation.js";
import { byId, make, setText } from "./dom.js";

const FLOOR_WORDS = {
  silent: "silent", speaking: "speaking", paused: "pausing",
  idle: "idle", thinking: "thinking", yielding: "listening",
};

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
      if (entry.role === "user") this.showUser(entry, this.lines.get(entry));
      else this.showAgent(entry, this.lines.get(entry));
    }
    if (following) this.list.scrollTop = this.list.scrollHeight;
  }

  add(entry) {
    const text = make("p", { class: "words" });
    const who = entry.role === "user" ? "You" : "Agent";
    const item = make("li", { class: `line ${entry.role}`, "data-turn": entry.turn }, make("span", { class: "who" }, who), text);
    this.lines.set(entry, { item, text, clauses: [] });
    this.list.append(item);
  }

  showUser(entry, { item, text }) {
    setText(text, entry.text);
    item.classList.toggle("partial", !entry.final);
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

export function showFloors({ user, agent }) {
  for (const [side, floor] of [["user", user], ["agent", agent]]) {
    byId(`${side}-floor`).dataset.floor = floor;
    setText(byId(`${side}-state`), FLOOR_WORDS[floor] ?? floor);
  }
}

export function showProblem(problem) {
  byId("problem").hidden = !problem;
  byId("problem").dataset.code = problem?.code ?? "";
  setText(byId("problem-title"), problem?.title ?? "");
  setText(byId("problem-text"), problem?.text ?? "");
}
