// Draws each turn's report: consecutive stages as bars on one time axis, with the budget as a line.

import { byId, make, setText } from "./dom.js";

const STAGES = [
  ["endpointing", "End of turn"],
  ["recognition", "Recognition"],
  ["first_token", "First token"],
  ["first_clause", "First clause"],
  ["synthesis", "Synthesis"],
  ["hold", "Held back"],
  ["send", "Sending"],
];

export class WaterfallView {
  constructor() {
    this.holder = byId("turns");
    this.cards = new Map(); // turn -> card
  }

  clear() {
    this.cards.clear();
    this.holder.replaceChildren();
    byId("turns-empty").hidden = false;
  }

  show(reports) {
    byId("turns-empty").hidden = reports.length > 0;
    for (const report of reports) {
      const known = this.cards.get(report.turn);
      if (known?.report === report) continue;
      const card = makeCard(report);
      card.open = known ? known.element.open : true;
      if (known) {
        known.element.replaceWith(card);
      } else {
        for (const older of this.cards.values()) older.element.open = false;
        this.holder.prepend(card);
      }
      this.cards.set(report.turn, { report, element: card });
    }
  }
}

function makeCard(report) {
  const total = report.voice_to_voice_ms;
  const timed = typeof total === "number";
  const over = timed && total > report.budget_ms;
  const summary = make("summary", {},
    make("span", { class: "turn-name" }, `Turn ${report.turn}`),
    make("span", { class: over ? "total over" : "total" }, timed ? `${round(total)} ms` : "no answer"));
  if (report.interrupted) summary.append(make("span", { class: "note" }, "interrupted"));
  if (timed) summary.append(make("span", { class: "of" }, `budget ${round(report.budget_ms)} ms`));
  const card = make("details", { class: "turn", "data-turn": report.turn }, summary);
  if (timed) card.append(makeRows(report));
  return card;
}

function makeRows(report) {
  const stages = report.stages_ms ?? {};
  const budgets = report.budget_stages_ms ?? {};
  const scale = 1.02 * Math.max(report.voice_to_voice_ms, report.budget_ms ?? 0, 1);
  const rows = make("ol", { class: "stages" });
  let begin = 0;
  for (const [name, label] of STAGES) {
    const length = stages[name];
    if (typeof length !== "number" || (name === "hold" && length < 0.5)) continue;
    rows.append(makeRow({ name, label, begin, length, budget: budgets[name], limit: report.budget_ms, scale }));
    begin += length;
  }
  return rows;
}

function makeRow({ name, label, begin, length, budget, limit, scale }) {
  const over = typeof budget === "number" && length > budget;
  const bar = make("span", { class: "bar" });
  bar.style.left = `${(100 * begin) / scale}%`;
  bar.style.width = `${(100 * Math.max(0, length)) / scale}%`;
  const axis = make("span", { class: "axis", "aria-hidden": "true" }, bar);
  if (typeof limit === "number") {
    const mark = make("span", { class: "limit" });
    mark.style.left = `${(100 * limit) / scale}%`;
    axis.append(mark);
  }
  const value = make("span", { class: "value" });
  setText(value, `${round(length)} ms`);
  const row = make("li", { class: over ? "stage-row over" : "stage-row", "data-stage": name },
    make("span", { class: "label" }, label), axis, value);
  if (typeof budget === "number") row.title = `${label}: ${round(length)} of ${round(budget)} ms`;
  return row;
}

function round(milliseconds) {
  return Math.round(milliseconds);
}
