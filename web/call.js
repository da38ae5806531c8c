// One connection to the agent: sound over WebRTC, events over the data channel `events` (docs/events.md).

import { CallProblem, refusalProblem } from "./problems.js";

const GATHERING_MS = 1000; // host candidates are there in milliseconds; do not wait for a slow interface
const CONNECT_MS = 15000;
const DISCONNECTED_MS = 1000; // it may heal by itself, but the browser has waited for seconds before it says so
const LOOK_MS = 1000;
const QUIET_LOOKS = 4; // without one packet of 50 a second; the browser itself says so after 8 s

export class Call {
  /**
   * `stream` is what the agent hears; `continues` the id of a lost call to go on with.
   * `on` has: live(), message(object), sound(stream), ended(problem or null). `ended` comes exactly once, nothing after.
   */
  constructor({ key, stream, continues, on }) {
    Object.assign(this, { key, stream, continues, on, live: false, over: false });
    this.sessionId = this.pc = this.sender = this.channel = this.timer = null;
  }

  async start() {
    try {
      if (!window.RTCPeerConnection) throw new CallProblem("unsupported");
      this.openPeer();
      await this.exchangeOffer();
    } catch (error) {
      this.end(error instanceof CallProblem ? error : new CallProblem("failed", { message: String(error.message ?? error) }));
    }
  }

  openPeer() {
    const pc = (this.pc = new RTCPeerConnection({ iceServers: [] }));
    const [track] = this.stream.getAudioTracks();
    const { receiver, sender } = pc.addTransceiver(track, { direction: "sendrecv", streams: [this.stream] });
    this.sender = sender;
    if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
    pc.addEventListener("track", (event) => this.on.sound(event.streams[0] ?? new MediaStream([event.track])));
    pc.addEventListener("connectionstatechange", () => this.connectionChanged());
    const channel = (this.channel = pc.createDataChannel("events"));
    channel.addEventListener("open", () => this.becomeLive());
    channel.addEventListener("message", (event) => this.receive(event.data));
    channel.addEventListener("close", () => this.lose());
    this.timer = setTimeout(() => this.end(new CallProblem("no_media")), CONNECT_MS);
  }

  async exchangeOffer() {
    await this.pc.setLocalDescription();
    await gathered(this.pc);
    if (this.over) return;
    const { sdp, type } = this.pc.localDescription;
    let response;
    try {
      response = await fetch("api/offer", {
        method: "POST",
        headers: { "Content-Type": "application/json", ...authorization(this.key) },
        body: JSON.stringify({ sdp, type, ...(this.continues && { continues: this.continues }) }),
        signal: AbortSignal.timeout?.(CONNECT_MS),
      });
    } catch {
      throw new CallProblem("unreachable");
    }
    if (!response.ok) throw await refusalProblem(response);
    const answer = await response.json();
    this.sessionId = answer.session_id;
    if (this.over) this.forgetSession();
    else await this.pc.setRemoteDescription({ sdp: answer.sdp, type: answer.type });
  }

  connectionChanged() {
    const state = this.pc.connectionState;
    if (state === "connected") {
      this.becomeLive();
    } else if (state === "disconnected") {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.lose(), DISCONNECTED_MS);
    } else if (state === "failed") {
      this.lose();
    }
  }

  lose() {
    this.end(new CallProblem(this.live ? "lost" : "no_media"));
  }

  /** The connection's own state may change after the first event has come over it: whichever is first counts. */
  becomeLive() {
    if (this.over) return;
    clearTimeout(this.timer);
    if (this.live) return;
    this.live = true;
    this.watcher = setInterval(() => this.watch(), LOOK_MS);
    this.on.live();
  }

  async watch() {
    const { packetsReceived } = (await this.statistics()) ?? {};
    this.quiet = packetsReceived === this.packets ? (this.quiet ?? 0) + 1 : 0;
    this.packets = packetsReceived;
    if (packetsReceived && this.quiet >= QUIET_LOOKS) this.lose();
  }

  receive(data) {
    if (this.over) return;
    let message = null;
    try {
      message = JSON.parse(data);
    } catch {
      // Told below, with everything else that is no event.
    }
    if (typeof message?.type !== "string") {
      console.warn("not an event on the data channel");
      return;
    }
    this.becomeLive();
    this.on.message(message);
    if (message.type === "session.ended") this.end(null);
  }

  /** False if there is no open channel to send on. */
  send(message) {
    if (this.channel?.readyState !== "open") return false;
    this.channel.send(JSON.stringify(message));
    return true;
  }

  /** From now on the agent hears this stream. */
  async hear(stream) {
    this.stream = stream;
    if (!this.over) await this.sender?.replaceTrack(stream.getAudioTracks()[0]);
  }

  hangUp() {
    this.send({ type: "hangup" });
    this.end(null);
  }

  /** Free everything but the microphone. Safe in any state and more than once; also on `pagehide`, hence synchronous. */
  end(problem) {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.timer);
    clearInterval(this.watcher);
    this.pc?.close();
    this.forgetSession();
    this.on.ended(problem);
  }

  forgetSession() {
    if (!this.sessionId) return;
    const address = `api/sessions/${encodeURIComponent(this.sessionId)}`;
    // keepalive outlives the page. If it fails the server notices the silence by itself.
    fetch(address, { method: "DELETE", headers: authorization(this.key), keepalive: true }).catch(() => {});
  }

  /** The received audio's statistics (`inbound-rtp`), or null. */
  async statistics() {
    const all = this.pc ? [...(await this.pc.getStats()).values()] : [];
    return all.find((one) => one.type === "inbound-rtp" && one.kind === "audio") ?? null;
  }
}

export function authorization(key) {
  return key ? { Authorization: `Bearer ${key}` } : {};
}

function gathered(pc) {
  if (pc.iceGatheringState === "complete") return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, GATHERING_MS);
    pc.addEventListener("icegatheringstatechange", () => {
      if (pc.iceGatheringState !== "complete") return;
      clearTimeout(timer);
      resolve();
    });
  });
}
