// Microphone and loudspeaker: which device, muted or not, and what happens when one is unplugged.

import { CallProblem, microphoneProblem } from "./problems.js";

export class Microphone {
  /** `raw` leaves the sound unprocessed (tests play recordings). `lost()` is called when the device goes away. */
  constructor({ raw, lost }) {
    Object.assign(this, { raw, lost, muted: false, closed: false });
    this.stream = null;
    this.context = null; // makes silence, for callers without a microphone
  }

  get track() {
    return this.stream?.getAudioTracks()[0] ?? null;
  }

  get deviceId() {
    return this.track?.getSettings().deviceId ?? "";
  }

  /** True while there is no real microphone behind the track. */
  get silent() {
    return this.context !== null;
  }

  /** Open the device, or the browser's choice without one. Throws CallProblem; what was open stays open then. */
  async open(deviceId = "") {
    if (!window.isSecureContext) throw new CallProblem("insecure");
    if (!navigator.mediaDevices) throw new CallProblem("unsupported");
    const processed = !this.raw;
    const audio = { echoCancellation: processed, noiseSuppression: processed, autoGainControl: processed, channelCount: 1 };
    if (deviceId) audio.deviceId = { exact: deviceId };
    try {
      this.use(await navigator.mediaDevices.getUserMedia({ audio }));
    } catch (error) {
      // The device of last time may be gone: any other is better than none.
      if (deviceId && /Overconstrained|NotFound/.test(error.name)) return this.open();
      throw microphoneProblem(error);
    }
  }

  /** A track that holds silence: a call can be made without a microphone, and typed in. */
  openSilence() {
    const context = new AudioContext();
    this.use(context.createMediaStreamDestination().stream);
    this.context = context;
  }

  use(stream) {
    this.stop();
    this.stream = stream;
    if (this.closed) {
      this.stop();
      return;
    }
    const track = this.track;
    track.enabled = !this.muted;
    track.addEventListener("ended", () => {
      if (this.track === track && !this.closed) this.lost();
    });
  }

  mute(muted) {
    this.muted = muted;
    if (this.track) this.track.enabled = !muted;
  }

  stop() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.context?.close();
    this.stream = this.context = null;
  }

  close() {
    this.closed = true;
    this.stop();
  }
}

export class Speaker {
  constructor(element) {
    this.element = element;
  }

  static get canChoose() {
    return "setSinkId" in HTMLMediaElement.prototype;
  }

  /** Play a stream. Resolves to whether it sounds: a browser may want a click first. */
  async play(stream) {
    if (stream) this.element.srcObject = stream;
    try {
      await this.element.play();
    } catch (error) {
      return error.name !== "NotAllowedError"; // others: replaced or stopped meanwhile
    }
    return true;
  }

  stop() {
    this.element.srcObject = null;
  }

  /** 0 to 1. */
  get volume() {
    return this.element.volume;
  }

  set volume(volume) {
    this.element.volume = volume;
  }

  async choose(deviceId) {
    await this.element.setSinkId(deviceId);
  }
}

/** {microphones, speakers}: lists of {id, label}. Browsers give labels only once a microphone was allowed. */
export async function listDevices() {
  const all = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
  const of = (kind) =>
    all.filter((device) => device.kind === kind && device.deviceId).map(({ deviceId, label }) => ({ id: deviceId, label }));
  return { microphones: of("audioinput"), speakers: of("audiooutput") };
}
