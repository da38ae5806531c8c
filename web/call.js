// One call: microphone and loudspeaker over WebRTC, events over the data channel `events` (docs/events.md).

import { CallProblem, microphoneProblem, refusalProblem } from "./problems.js";

const GATHERING_MS = 1000; // host candidates are there in milliseconds; do not wait for a slow interface
const CONNECT_MS = 15000;
const DISCONNECTED_MS = 5000; // "disconnected" often heals by itself

class HungUp extends Error {}

export class Call {
  /** `on` has: live(), message(object), sound(stream), ended(problem or null). `ended` comes exactly once. */
  constructor({ key, raw, on }) {
    this.key = key;
    this.raw = raw;
    this.on = on;
    this.sessionId = null;
    this.microphone = null;
    this.pc = null;
    this.channel = null;
    this.over = false;
    this.timer = null;
  }

  async start() {
    try {
      await this.openMicrophone();
      this.openPeer();
      await this.exchangeOffer();
    } catch (error) {
      if (error instanceof HungUp) return;
      this.end(error instanceof CallProblem ? error : new CallProblem("failed", { message: String(error.message ?? error) }));
    }
  }

  async openMicrophone() {
    if (!window.isSecureContext) throw new CallProblem("insecure");
    if (!window.RTCPeerConnection || !navigator.mediaDevices) throw new CallProblem("unsupported");
    const processed = !this.raw; // tests play a recording as the microphone, which processing would distort
    const audio = { echoCancellation: processed, noiseSuppression: processed, autoGainControl: processed, channelCount: 1 };
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio });
    } catch (error) {
      throw microphoneProblem(error);
    }
    if (this.over) {
      stopTracks(stream);
      throw new HungUp();
    }
    this.microphone = stream;
  }

  openPeer() {
    const pc = (this.pc = new RTCPeerConnection({ iceServers: [] }));
    const [track] = this.microphone.getAudioTracks();
    track.addEventListener("ended", () => this.end(new CallProblem("no_microphone")));
    const { receiver } = pc.addTransceiver(track, { direction: "sendrecv", streams: [this.microphone] });
    if ("jitterBufferTarget" in receiver) receiver.jitterBufferTarget = 0;
    pc.addEventListener("track", (event) => this.on.sound(event.streams[0] ?? new MediaStream([event.track])));
    pc.addEventListener("connectionstatechange", () => this.connectionChanged());
    const channel = (this.channel = pc.createDataChannel("events"));
    channel.addEventListener("open", () => this.becomeLive());
    channel.addEventListener("message", (event) => this.receive(event.data));
    channel.addEventListener("close", () => this.end(new CallProblem("lost")));
    this.timer = setTimeout(() => this.end(new CallProblem("no_media")), CONNECT_MS);
  }

  async exchangeOffer() {
    await this.pc.setLocalDescription();
    await gathered(this.pc);
    if (this.over) throw new HungUp();
    const { sdp, type } = this.pc.localDescription;
    let response;
    try {
      response = await fetch("api/offer", {
        method: "POST",
        headers: { "Content-Type": "application/json", ...this.authorization() },
        body: JSON.stringify({ sdp, type }),
      });
    } catch {
      throw new CallProblem("unreachable");
    }
    if (!response.ok) throw await refusalProblem(response);
    const answer = await response.json();
    this.sessionId = answer.session_id;
    if (this.over) {
      this.forgetSession();
      throw new HungUp();
    }
    await this.pc.setRemoteDescription({ sdp: answer.sdp, type: answer.type });
  }

  connectionChanged() {
    const state = this.pc.connectionState;
    if (state === "connected") {
      this.becomeLive();
    } else if (state === "disconnected") {
      this.timer = setTimeout(() => this.end(new CallProblem("lost")), DISCONNECTED_MS);
    } else if (state === "failed") {
      this.end(new CallProblem("lost"));
    }
  }

  /** The connection's own state may change after the first event has come over it: whichever is first counts. */
  becomeLive() {
    clearTimeout(this.timer);
    this.on.live();
  }

  receive(data) {
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
    this.on.message(message);
    if (message.type === "session.ended") this.end(null);
  }

  /** False if there is no open channel to send on. */
  send(message) {
    if (this.channel?.readyState !== "open") return false;
    this.channel.send(JSON.stringify(message));
    return true;
  }

  hangUp() {
    this.send({ type: "hangup" });
    this.end(null);
  }

  /** Free everything. Safe to call in any state and more than once; also on `pagehide`, hence nothing asynchronous. */
  end(problem) {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.timer);
    if (this.microphone) stopTracks(this.microphone);
    this.pc?.close();
    this.forgetSession();
    this.on.ended(problem);
  }

  forgetSession() {
    if (!this.sessionId) return;
    const address = `api/sessions/${encodeURIComponent(this.sessionId)}`;
    // keepalive outlives the page. If it fails the server notices the silence by itself.
    fetch(address, { method: "DELETE", headers: this.authorization(), keepalive: true }).catch(() => {});
  }

  authorization() {
    return this.key ? { Authorization: `Bearer ${this.key}` } : {};
  }

  /** The received audio's statistics (`inbound-rtp`), or null. */
  async statistics() {
    const all = this.pc ? [...(await this.pc.getStats()).values()] : [];
    return all.find((one) => one.type === "inbound-rtp" && one.kind === "audio") ?? null;
  }
}

function stopTracks(stream) {
  for (const track of stream.getTracks()) track.stop();
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
