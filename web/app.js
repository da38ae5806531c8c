// The page: one call at a time, its buttons, and what it shows of itself to tests (window.voiceAgent).

import { Call } from "./call.js";
import { apply, newConversation } from "./conversation.js";
import { byId, setText } from "./dom.js";
import { Meters } from "./meter.js";
import { CallProblem, progressText } from "./problems.js";
import { TranscriptView, showFloors, showProblem } from "./view.js";
import { WaterfallView } from "./waterfall.js";

const READY_POLL_MS = 1000;
const STATUS = { idle: "Ready", connecting: "Connecting …", live: "On the call", ended: "Call ended", failed: "Not connected" };
const BUTTON = { idle: "Start talking", connecting: "Cancel", live: "Hang up", ended: "Start again", failed: "Try again" };

const parameters = new URLSearchParams(location.search);
const transcriptView = new TranscriptView();
const waterfallView = new WaterfallView();
let call = null;
let meters = null;
let page = "idle"; // idle, connecting, live, ended, failed
let problem = null;
let waiting = null; // what is still loading, as text
let watching = false;
let conversation = newConversation();

window.voiceAgent = {
  get state() {
    return { ...conversation.state, page, problem: problem?.code ?? null };
  },
  get transcript() {
    return conversation.transcript;
  },
  get reports() {
    return conversation.reports;
  },
  statistics: () => call?.statistics() ?? Promise.resolve(null),
};

function show() {
  const { agent } = conversation.state;
  const live = page === "live";
  document.body.dataset.page = page;
  setText(byId("status"), waiting ?? STATUS[page]);
  setText(byId("call"), BUTTON[page]);
  byId("interrupt").disabled = !live || agent === "idle";
  byId("text").disabled = byId("send").disabled = !live;
  showFloors(conversation.state);
  showProblem(problem);
  transcriptView.show(conversation.transcript);
  waterfallView.show(conversation.reports);
}

function startCall() {
  page = "connecting";
  problem = null;
  conversation = newConversation();
  transcriptView.clear();
  waterfallView.clear();
  meters = window.AudioContext ? new Meters() : null;
  call = new Call({
    key: parameters.get("key"),
    raw: parameters.get("raw") === "1",
    on: { live: onLive, message: onMessage, sound: onSound, ended: onEnded },
  });
  call.start();
  show();
}

function onLive() {
  if (page !== "connecting") return;
  meters?.watch(call.microphone, byId("user-level"));
  page = "live";
  show();
}

function onMessage(message) {
  apply(conversation, message);
  if (message.type === "error") console.warn(`server: ${message.code}: ${message.message}`);
  show();
}

async function onSound(stream) {
  const speaker = byId("speaker");
  speaker.srcObject = stream;
  meters?.watch(stream, byId("agent-level"));
  try {
    await speaker.play();
  } catch (error) {
    if (error.name === "NotAllowedError") call.end(new CallProblem("playback"));
  }
}

function onEnded(reason) {
  page = reason ? "failed" : "ended";
  problem = reason;
  Object.assign(conversation.state, { user: "silent", agent: "idle" });
  byId("speaker").srcObject = null;
  meters?.close();
  meters = null;
  show();
  if (problem?.code === "loading") watchLoading();
}

function interrupt() {
  call?.send({ type: "interrupt" });
}

function sendText(event) {
  event.preventDefault();
  const text = byId("text").value.trim();
  if (text && call?.send({ type: "text", text })) byId("text").value = "";
}

/** Ask until the models are loaded, and show what is still to come. */
async function watchLoading() {
  if (watching) return;
  watching = true;
  while (await stillLoading()) {
    show();
    await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
  }
  watching = false;
  waiting = null;
  if (problem?.code === "loading") [page, problem] = ["idle", null];
  show();
}

async function stillLoading() {
  try {
    const response = await fetch("readyz", { cache: "no-store" });
    if (response.status !== 503) return false;
    waiting = progressText((await response.json()).progress);
    return true;
  } catch {
    return false; // no server, or not ours: starting a call will say so
  }
}

byId("call").addEventListener("click", () => {
  if (page === "connecting" || page === "live") call.hangUp();
  else startCall();
});
byId("interrupt").addEventListener("click", interrupt);
byId("typing").addEventListener("submit", sendText);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !byId("interrupt").disabled) interrupt();
});
window.addEventListener("pagehide", () => call?.end(null));

show();
watchLoading();
