// The past turns side by side: a column per turn, made of its stages, with the budget as a line.

import { byId, make, setText } from "./dom.js";
import { STAGES } from "./waterfall.js";

const SHOWN = 30;

export class Strip {
  constructor(reveal) {
    this.reveal = reveal;
    this.holder = byId("strip");
    this.columns = new Map(); // report -> button
    this.scale = 0;
  }

  clear() {
    this.columns.clear();
    this.holder.replaceChildren();
    this.scale = 0;
    byId("trend").hidden = true;
  }

  show(reports) {
    const timed = reports.filter((report) => typeof report.voice_to_voice_ms === "number").slice(-SHOWN);
    byId("trend").hidden = timed.length === 0;
    if (!timed.length) return;
    const scale = 1.1 * Math.max(...timed.flatMap((report) => [report.voice_to_voice_ms, report.budget_ms ?? 0]));
    if (scale !== this.scale) this.columns.clear(); // all columns change their height
    this.scale = scale;
    const wanted = timed.map((report) => this.columns.get(report) ?? this.makeColumn(report));
    if (wanted.some((column, index) => this.holder.children[index + 1] !== column)) {
      this.holder.replaceChildren(budgetLine(timed[timed.length - 1].budget_ms / scale), ...wanted);
      this.holder.scrollLeft = this.holder.scrollWidth;
    }
    this.columns = new Map(timed.map((report, index) => [report, wanted[index]]));
    setText(byId("trend-text"), trendText(timed));
  }

  makeColumn(report) {
    const over = report.voice_to_voice_ms > report.budget_ms;
    const facts = [`${Math.round(report.voice_to_voice_ms)} ms`, over ? "over budget" : "within budget"];
    if (report.interrupted) facts.push("interrupted");
    const label = `Turn ${report.turn}: ${facts.join(", ")}`;
    const column = make("button", { type: "button", class: over ? "column over" : "column", "aria-label": label, title: label });
    for (const [name] of [...STAGES].reverse()) {
      const length = report.stages_ms?.[name];
      if (!(length > 0)) continue;
      const part = make("span", { class: `part s-${name}` });
      part.style.height = `${(100 * length) / this.scale}%`;
      column.append(part);
    }
    column.addEventListener("click", () => this.reveal(report));
    return column;
  }
}

function budgetLine(share) {
  const line = make("span", { class: "budget-line", "aria-hidden": "true" });
  line.style.bottom = `${100 * share}%`;
  return line;
}

function trendText(timed) {
  const sorted = timed.map((report) => report.voice_to_voice_ms).sort((a, b) => a - b);
  const median = sorted[Math.ceil(sorted.length / 2) - 1]; // nearest rank, as `voice-agent report` has it
  const over = timed.filter((report) => report.voice_to_voice_ms > report.budget_ms).length;
  const turns = timed.length === 1 ? "1 turn" : `${timed.length} turns`;
  return `Median ${Math.round(median)} ms over ${turns}; ${over} over the budget of ${Math.round(timed[timed.length - 1].budget_ms)} ms.`;
}
