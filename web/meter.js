// How loud a stream is, as the width of a bar.

const FLOOR_DB = -55; // quieter counts as silence
const CEILING_DB = -12;
const CALM_MS = 250; // between two changes for people who asked for less motion

export class Meters {
  constructor() {
    this.context = new AudioContext();
    this.taps = new Map(); // bar -> tap
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.drawn = 0;
    this.running = true;
    this.draw = this.draw.bind(this);
    requestAnimationFrame(this.draw);
  }

  /** Show this stream on the bar, in place of the one before. `show(level)`, 0 to 1, is told besides. */
  watch(stream, bar, show = () => {}) {
    this.taps.get(bar)?.source.disconnect();
    const source = this.context.createMediaStreamSource(stream);
    const analyser = this.context.createAnalyser();
    analyser.fftSize = 1024;
    source.connect(analyser);
    this.taps.set(bar, { source, analyser, bar, show, samples: new Float32Array(analyser.fftSize), level: 0 });
  }

  draw(now) {
    if (!this.running) return;
    requestAnimationFrame(this.draw);
    if (this.calm.matches && now - this.drawn < CALM_MS) return;
    this.drawn = now;
    for (const tap of this.taps.values()) {
      tap.analyser.getFloatTimeDomainData(tap.samples);
      tap.level = Math.max(loudnessOf(tap.samples), tap.level * 0.88); // rises at once, falls softly
      paint(tap, tap.level);
    }
  }

  close() {
    this.running = false;
    for (const tap of this.taps.values()) {
      tap.source.disconnect();
      paint(tap, 0);
    }
    this.taps.clear();
    this.context.close();
  }
}

function paint({ bar, show }, level) {
  bar.style.transform = `scaleX(${level.toFixed(3)})`;
  show(level);
}

function loudnessOf(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  const db = 10 * Math.log10(sum / samples.length + 1e-12);
  return Math.min(1, Math.max(0, (db - FLOOR_DB) / (CEILING_DB - FLOOR_DB)));
}
