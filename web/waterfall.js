// Draws each turn's report: consecutive stages as bars on one time axis, with the budget of each and of the whole.

import { byId, make } from "./dom.js";

export const STAGES = [
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
      const key = `${report.call}/${report.turn}`;
      const known = this.cards.get(key);
      if (known?.report === report) continue;
      const card = makeCard(report);
      card.open = known ? known.element.open : true;
      if (known) {
        known.element.replaceWith(card);
      } else {
        for (const older of this.cards.values()) older.element.open = false;
        this.holder.prepend(card);
      }
      this.cards.set(key, { report, element: card });
    }
  }

  /** Open one turn, close the others, and bring it into view. */
  reveal(report) {
    for (const card of this.cards.values()) card.element.open = card.report === report;
    const card = this.cards.get(`${report.call}/${report.turn}`)?.element;
    card?.scrollIntoView({ block: "nearest" });
    card?.querySelector("summary").focus();
  }
}

function makeCard(report) {
  const total = report.voice_to_voice_ms;
  const timed = typeof total === "number";
  const over = timed && total > report.budget_ms;
  const summary = make("summary", {},
    make("span", { class: "turn-name" }, `Turn ${report.turn}`),
    make("span", { class: over ? "total over" : "total" }, timed ? `${Math.round(total)} ms` : "no answer"));
  if (report.interrupted) summary.append(make("span", { class: "note" }, "interrupted"));
  if (timed) summary.append(make("span", { class: "of" }, `${over ? "over" : "within"} ${Math.round(report.budget_ms)} ms`));
  const card = make("details", { class: "turn", "data-turn": report.turn }, summary);
  if (timed) card.append(makeRows(report), makeKey(report));
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
  const budgeted = budget > 0; // what is held back counts to the end of turn and has none of its own
  const over = budgeted && length > budget;
  const axis = make("span", { class: "axis", "aria-hidden": "true" });
  if (budgeted) axis.append(span("allowed", begin / scale, Math.min(budget, scale - begin) / scale));
  axis.append(span(`bar s-${name}`, begin / scale, Math.max(0, length) / scale));
  if (typeof limit === "number") axis.append(span("limit", limit / scale));
  const value = make("span", { class: "value" }, `${Math.round(length)} ms`);
  const row = make("li", { class: over ? "stage-row over" : "stage-row", "data-stage": name },
    make("span", { class: "label" }, label), axis, value);
  if (budgeted) value.append(make("span", { class: "hidden" }, ` of ${Math.round(budget)} ms${over ? ", over budget" : ""}`));
  return row;
}

function makeKey(report) {
  return make("p", { class: "hint key" }, `Outlined: each stage's budget. Line: the whole budget of ${Math.round(report.budget_ms)} ms.`);
}

/** A piece of the axis; left and width as shares of it. */
function span(kind, left, width) {
  const element = make("span", { class: kind });
  element.style.left = `${100 * left}%`;
  if (width !== undefined) element.style.width = `${100 * width}%`;
  return element;
}
