// The microphone, the loudspeaker and the volume as the caller sets them, and what happens when a device goes away.

import { byId, make } from "./dom.js";
import { CallProblem } from "./problems.js";
import { listDevices, Microphone, Speaker } from "./sound.js";

export class Devices {
  /**
   * `kept` are choices of last time (microphone, speaker, volume), `keep(name, value)` remembers one.
   * `on` has heard(stream): the agent should hear this one from now on; problem(problem or null): tell the caller.
   */
  constructor({ raw, kept, keep, on }) {
    Object.assign(this, { raw, kept, keep, on });
    this.microphone = null;
    this.speaker = new Speaker(byId("speaker"));
    this.muted = false;
    byId("volume").value = 100 * (kept.volume ?? 1);
    byId("volume").addEventListener("input", () => {
      this.setVolume();
      keep("volume", this.speaker.volume);
    });
    byId("microphone").addEventListener("change", (event) => this.chooseMicrophone(event.target.value));
    byId("speaker-choice").addEventListener("change", (event) => this.chooseSpeaker(event.target.value));
    byId("speaker-row").hidden = !Speaker.canChoose;
    navigator.mediaDevices?.addEventListener?.("devicechange", () => this.changed());
    this.setVolume();
    this.list();
  }

  /** Open the microphone (or silence) for a call; gives its stream. Throws CallProblem. */
  async open({ silent }) {
    const microphone = (this.microphone = new Microphone({ raw: this.raw, lost: () => this.lost() }));
    microphone.mute(this.muted);
    this.waiting = false; // for a microphone to be plugged in
    if (silent) microphone.openSilence();
    else await microphone.open(this.kept.microphone);
    if (this.kept.speaker) this.chooseSpeaker(this.kept.speaker);
    this.list();
    return microphone.stream;
  }

  close() {
    this.microphone?.close();
    this.microphone = null;
    this.speaker.stop();
  }

  mute(muted) {
    this.muted = muted;
    this.microphone?.mute(muted);
  }

  get silent() {
    return this.microphone?.silent ?? false;
  }

  setVolume() {
    const percent = Number(byId("volume").value);
    this.speaker.volume = percent / 100;
    byId("volume-value").textContent = `${percent} %`;
  }

  async chooseMicrophone(id) {
    this.keep("microphone", id);
    if (!this.microphone) return;
    try {
      await this.reopen(id);
      this.on.problem(null);
    } catch {
      this.on.problem(new CallProblem("device"));
    }
    this.list();
  }

  async chooseSpeaker(id) {
    this.keep("speaker", id);
    try {
      await this.speaker.choose(id);
    } catch {
      this.keep("speaker", "");
      byId("speaker-choice").value = "";
      this.on.problem(new CallProblem("device"));
    }
  }

  async reopen(id) {
    const microphone = this.microphone;
    await microphone.open(id);
    this.waiting = false;
    if (this.microphone === microphone) this.on.heard(microphone.stream);
  }

  /** The device is gone: any other will do; with none the call goes on in silence until one comes. */
  async lost() {
    try {
      await this.reopen("");
      this.on.problem(new CallProblem("switched"));
    } catch {
      if (!this.microphone) return;
      this.microphone.openSilence();
      this.waiting = true;
      this.on.heard(this.microphone.stream);
      this.on.problem(new CallProblem("unplugged"));
    }
    this.list();
  }

  /** Something was plugged in or out. */
  async changed() {
    this.list();
    if (!this.waiting || !this.microphone) return;
    try {
      await this.reopen("");
      this.on.problem(null);
    } catch {
      // It was no microphone: wait on.
    }
  }

  async list() {
    const { microphones, speakers } = await listDevices();
    fill(byId("microphone"), microphones, this.microphone?.deviceId || this.kept.microphone);
    fill(byId("speaker-choice"), speakers, this.kept.speaker);
  }
}

function fill(select, devices, current = "") {
  const options = devices.map(({ id, label }, index) => make("option", { value: id }, label || `Device ${index + 1}`));
  if (!devices.some(({ id }) => id === "default")) options.unshift(make("option", { value: "" }, "The browser's choice"));
  select.replaceChildren(...options);
  const known = [...select.options].some((option) => option.value === current);
  select.value = known ? current : select.options[0].value;
}
