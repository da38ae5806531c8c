// From the press of the button to the end: opens the sound, makes the call, and makes it again when the connection is
// lost. `page` says where it is: idle, connecting, live, reconnecting, ended, failed.

import { Call } from "./call.js";
import { loseConnection, newConversation } from "./conversation.js";
import { CallProblem, PASSING } from "./problems.js";

const RETRY_MS = [0, 500, 1000, 2000, 4000, 8000];
const GIVE_UP_MS = 120000;
const SOLVED = new Set(["switched", "device"]);
const SOLVED_MS = 8000;

export class Phone {
  /** `on` has changed(), message(object), sound(stream), began(stream), over(). */
  constructor({ key, devices, on }) {
    Object.assign(this, { key, devices, on });
    this.page = "idle";
    this.problem = null;
    this.call = null;
    this.attempt = 0; // number of the connection that counts; whatever an older one still says is void
    this.conversation = newConversation();
    this.timing = { pressed: 0, listening_ms: null };
    this.lostAt = 0;
    this.tries = 0;
    this.timer = null;
    window.addEventListener("online", () => this.page === "reconnecting" && this.retry(0));
  }

  /** Begin a new call. With `silent` there is no microphone, and the caller types. */
  async start({ silent = false } = {}) {
    this.silent = silent;
    this.timing = { pressed: performance.now(), listening_ms: null };
    this.conversation = newConversation();
    this.move("connecting");
    await this.withSound((stream) => this.connect(stream, null));
  }

  /** Go on with a conversation whose connection did not come back. */
  async resume() {
    this.move("reconnecting", new CallProblem("lost"));
    await this.withSound(() => {
      this.lostAt = performance.now();
      this.tries = 0;
      this.retryOrGiveUp(null);
    });
  }

  async withSound(then) {
    const attempt = (this.attempt += 1);
    try {
      const stream = await this.devices.open({ silent: this.silent });
      if (attempt === this.attempt) then(stream);
    } catch (error) {
      if (attempt === this.attempt) this.finish("failed", error instanceof CallProblem ? error : new CallProblem("failed"));
    }
  }

  connect(stream, continues) {
    const attempt = (this.attempt += 1);
    this.call?.end(null);
    const current = (act) => (value) => attempt === this.attempt && act(value);
    this.call = new Call({
      key: this.key,
      stream,
      continues,
      on: {
        live: current(() => this.live()),
        message: current((message) => this.on.message(message)),
        sound: current((sound) => this.on.sound(sound)),
        ended: current((problem) => this.ended(problem)),
      },
    });
    this.call.start();
  }

  live() {
    this.timing.listening_ms ??= Math.round(performance.now() - this.timing.pressed);
    this.tries = 0;
    this.on.began(this.devices.microphone.stream);
    this.move("live", this.problem?.code === "playback" ? this.problem : null);
  }

  ended(problem) {
    if (this.page === "live" && problem) this.lose();
    else if (this.page === "reconnecting" && PASSING.has(problem?.code)) this.retryOrGiveUp(problem);
    else if (problem) this.finish("failed", problem);
    else this.finish("ended", this.conversation.state.ended === "error" ? new CallProblem("broke") : null);
  }

  lose() {
    loseConnection(this.conversation);
    this.lostAt = performance.now();
    this.tries = 0;
    this.move("reconnecting", new CallProblem("lost"));
    this.retryOrGiveUp(null);
  }

  retryOrGiveUp(problem) {
    if (performance.now() - this.lostAt > GIVE_UP_MS) {
      this.finish("failed", new CallProblem("gone"));
      return;
    }
    const pause = RETRY_MS[Math.min(this.tries, RETRY_MS.length - 1)];
    this.tries += 1;
    this.retry(Math.max(pause, 1000 * (problem?.retryAfter ?? 0)));
  }

  retry(pause) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { sessions } = this.conversation;
      this.connect(this.devices.microphone.stream, sessions[sessions.length - 1] ?? null);
    }, pause);
  }

  /** The big button. */
  press() {
    if (this.problem?.code === "gone") this.resume();
    else if (["idle", "ended", "failed"].includes(this.page)) this.start();
    else this.hangUp();
  }

  hangUp() {
    this.attempt += 1;
    this.call?.hangUp();
    this.finish("ended", null);
  }

  /** False if there is nobody to hear it. */
  send(message) {
    return this.page === "live" && this.call.send(message);
  }

  finish(page, problem) {
    this.attempt += 1; // whatever still comes is void
    clearTimeout(this.timer);
    this.call = null;
    this.devices.close();
    Object.assign(this.conversation.state, { user: "silent", agent: "idle" });
    this.on.over();
    this.move(page, problem);
  }

  /** A problem that does not end the call, or null. One that has solved itself goes away by itself. */
  tell(problem) {
    this.problem = problem;
    this.on.changed();
    if (SOLVED.has(problem?.code)) setTimeout(() => this.problem === problem && this.tell(null), SOLVED_MS);
  }

  move(page, problem = null) {
    this.page = page;
    this.problem = problem;
    this.on.changed();
  }
}
