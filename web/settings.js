// The settings pane. What somebody chose is kept in this browser and sent to the agent at the beginning of each call
// and at every change; what nobody chose stays as the server has it.

import { byId, make, setText } from "./dom.js";

const TELLING = "Telling the agent …";
const STORE = "voice-agent.settings";
const LANGUAGES = "en ar cs de es fr hi it ja ko nl pl pt ru sv tr uk zh".split(" ");

export class Settings {
  /** `send(message)` puts it on its way if there is a call, and says whether it did. */
  constructor(send) {
    this.send = send;
    this.chosen = load(); // any of speed, language, prompt; devices and volume as `microphone`, `speaker`, `volume`
    this.server = {}; // the same as the server has it; known once a call has begun
    fillLanguages();
    byId("speed").addEventListener("input", () => showSpeed());
    byId("speed").addEventListener("change", () => this.choose("speed", Number(byId("speed").value)));
    byId("language").addEventListener("change", () => this.choose("language", byId("language").value));
    byId("prompt").addEventListener("change", () => this.choose("prompt", byId("prompt").value));
    byId("settings-form").addEventListener("submit", (event) => event.preventDefault());
    byId("settings-reset").addEventListener("click", () => this.restore(["speed", "language", "prompt"]));
    this.show();
  }

  /** The call began: `server` are the server's settings. */
  begin(server) {
    this.server = server ?? {};
    const { speed, language, prompt } = this.chosen;
    const own = { speed, language, prompt };
    if (Object.values(own).some((value) => value !== undefined)) this.send({ type: "settings", ...own });
    this.show();
  }

  taken() {
    say("The agent will use this from the next turn on.");
  }

  refused(message) {
    if (byId("settings-told").textContent === TELLING) say(`Not taken: ${message}`);
  }

  /** Remember a device or a volume; the agent need not know. */
  keep(name, value) {
    this.chosen[name] = value;
    save(this.chosen);
  }

  choose(name, value) {
    if (value === "") return this.restore([name]); // cleared: as the server has it
    this.keep(name, value);
    this.tell({ [name]: value });
  }

  restore(names) {
    for (const name of names) delete this.chosen[name];
    save(this.chosen);
    this.show();
    this.tell(Object.fromEntries(names.map((name) => [name, this.server[name]])));
  }

  tell(changed) {
    const sent = this.send({ type: "settings", ...changed });
    say(sent ? TELLING : "Kept for the next call.");
  }

  show() {
    const { speed, language, prompt } = { ...this.server, ...this.chosen };
    byId("speed").value = speed ?? 1;
    showSpeed();
    byId("language").value = language ?? "";
    byId("prompt").value = prompt ?? "";
    if (this.server.voice) setText(byId("voice"), `${this.server.voice} (this server has no other)`);
  }
}

function say(text) {
  setText(byId("settings-told"), text);
}

function showSpeed() {
  setText(byId("speed-value"), `${Number(byId("speed").value).toFixed(2)} ×`);
}

function fillLanguages() {
  const names = new Intl.DisplayNames(["en"], { type: "language" });
  const options = LANGUAGES.map((code) => [code, names.of(code)]).sort((a, b) => a[1].localeCompare(b[1]));
  byId("language").append(
    make("option", { value: "", hidden: "" }, "as the server has it"),
    make("option", { value: "auto" }, "Any language (found out by listening)"),
    ...options.map(([value, name]) => make("option", { value }, name)),
  );
}

// A browser may forbid storage; then choices last as long as the page.
function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE));
    return kept && typeof kept === "object" ? kept : {};
  } catch {
    return {};
  }
}

function save(chosen) {
  try {
    localStorage.setItem(STORE, JSON.stringify(chosen));
  } catch {
    // See above.
  }
}
