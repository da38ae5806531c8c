// Puts the parts together, draws them, and shows tests what it knows (window.voiceAgent).

import { apply } from "./conversation.js";
import { Devices } from "./devices.js";
import { byId, setText } from "./dom.js";
import { Meters } from "./meter.js";
import { Phone } from "./phone.js";
import { CallProblem } from "./problems.js";
import { watchLoading } from "./readiness.js";
import { SavePane } from "./save.js";
import { Settings } from "./settings.js";
import { Strip } from "./strip.js";
import { showActivity, showProblem, TranscriptView } from "./view.js";
import { WaterfallView } from "./waterfall.js";

const STATUS = {
  idle: "Ready", connecting: "Connecting …", live: "On the call", reconnecting: "Connection lost, connecting again …",
  ended: "Call ended", failed: "Not connected",
};
const BUTTON = {
  idle: "Start talking", connecting: "Cancel", live: "Hang up", reconnecting: "Hang up", ended: "New call", failed: "Try again",
};

const parameters = new URLSearchParams(location.search);
const key = parameters.get("key");
const transcriptView = new TranscriptView();
const waterfallView = new WaterfallView();
const strip = new Strip((report) => waterfallView.reveal(report));
const settings = new Settings((message) => phone.send(message));
const devices = new Devices({
  raw: parameters.get("raw") === "1",
  kept: settings.chosen,
  keep: (name, value) => settings.keep(name, value),
  on: { heard: hearAnother, problem: (problem) => phone.tell(problem) },
});
const phone = new Phone({
  key,
  devices,
  on: { changed, message: onMessage, sound: onSound, began: onBegan, over: onOver },
});
const savePane = new SavePane(() => phone.conversation, key);
let meters = null;
let shown = null; // the conversation on the page
let waiting = null; // what is still loading, as text
let retryAt = 0; // when a full server wants to be asked again; 0: it does not say

window.voiceAgent = {
  get state() {
    return { ...phone.conversation.state, page: phone.page, problem: phone.problem?.code ?? null, muted: devices.muted };
  },
  get transcript() {
    return phone.conversation.transcript;
  },
  get reports() {
    return phone.conversation.reports;
  },
  get timing() {
    return phone.timing;
  },
  statistics: () => phone.call?.statistics() ?? Promise.resolve(null),
};

function changed() {
  show();
  if (phone.problem?.code === "loading") watch();
}

function show() {
  const { page, problem, conversation } = phone;
  const { user, agent } = conversation.state;
  const live = page === "live";
  if (shown !== conversation) {
    for (const view of [transcriptView, waterfallView, strip]) view.clear();
    shown = conversation;
  }
  setText(byId("status"), waiting ?? STATUS[page]);
  setText(byId("call"), problem?.code === "gone" ? "Reconnect" : BUTTON[page]);
  byId("interrupt").disabled = !live || agent === "idle";
  byId("text").disabled = byId("send").disabled = !live;
  byId("mute").disabled = !live && page !== "reconnecting";
  byId("mute").setAttribute("aria-pressed", String(devices.muted));
  showActivity({ page, user, agent, muted: devices.muted, silent: devices.silent });
  showProblem(problem, secondsLeft(problem));
  transcriptView.show(conversation.transcript);
  waterfallView.show(conversation.reports);
  strip.show(conversation.reports);
  savePane.show(conversation);
}

/** Whole seconds until a full server wants to be asked again, counted down; null: it does not say. */
function secondsLeft(problem) {
  if (phone.page !== "failed" || problem?.code !== "busy" || !problem.retryAfter) {
    retryAt = 0;
    return null;
  }
  retryAt ||= performance.now() + 1000 * problem.retryAfter;
  const left = retryAt - performance.now();
  if (left > 0) setTimeout(() => phone.problem === problem && show(), Math.min(left, 1000) + 10);
  return Math.max(0, Math.ceil(left / 1000));
}

function onMessage(message) {
  try {
    apply(phone.conversation, message);
  } catch (error) {
    console.warn(`an event that is not as it should be: ${error.message}`);
  }
  if (message.type === "session.started") settings.begin(message.settings);
  if (message.type === "settings") settings.taken();
  if (message.type === "error") {
    console.warn(`server: ${message.code}: ${message.message}`);
    if (message.code === "bad_message") settings.refused(message.message);
  }
  show();
}

function onBegan(stream) {
  meters ??= new Meters();
  hearAnother(stream);
}

async function onSound(stream) {
  meters ??= new Meters();
  meters.watch(stream, byId("agent-level"), (level) => {
    byId("glow").style.transform = `scale(${(0.55 + 0.45 * level).toFixed(3)})`;
  });
  await play(stream);
}

async function play(stream) {
  const sounds = await devices.speaker.play(stream);
  if (!sounds) phone.tell(new CallProblem("playback"));
  else if (phone.problem?.code === "playback") phone.tell(null);
}

function onOver() {
  meters?.close();
  meters = null;
}

/** The agent hears this stream from now on, and so does the meter. */
function hearAnother(stream) {
  phone.call?.hear(stream);
  meters?.watch(stream, byId("user-level"));
}

function interrupt() {
  phone.send({ type: "interrupt" });
}

function toggleMute() {
  devices.mute(!devices.muted);
  show();
}

function sendText(event) {
  event.preventDefault();
  const text = byId("text").value.trim();
  if (text && phone.send({ type: "text", text })) byId("text").value = "";
}

function takeWayOut() {
  const { action } = phone.problem ?? {};
  if (action === "type") phone.start({ silent: true });
  if (action === "play") play(null);
  if (action === "fresh") phone.start();
  if (action === "reload") location.reload();
}

function watch() {
  watchLoading((text) => {
    waiting = text;
    if (text === null && phone.problem?.code === "loading") phone.move("idle");
    else show();
  });
}

byId("call").addEventListener("click", () => phone.press());
byId("interrupt").addEventListener("click", interrupt);
byId("mute").addEventListener("click", toggleMute);
byId("typing").addEventListener("submit", sendText);
byId("problem-action").addEventListener("click", takeWayOut);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !byId("interrupt").disabled) interrupt();
  if (event.altKey && event.code === "KeyM" && !byId("mute").disabled) {
    event.preventDefault();
    toggleMute();
  }
});
window.addEventListener("pagehide", () => phone.call && phone.hangUp());

show();
watch();
