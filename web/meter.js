// How loud a stream is, as the width of a bar.

const FLOOR_DB = -55; // quieter counts as silence
const CEILING_DB = -12;

export class Meters {
  constructor() {
    this.context = new AudioContext();
    this.taps = [];
    this.running = true;
    this.draw = this.draw.bind(this);
    requestAnimationFrame(this.draw);
  }

  watch(stream, bar) {
    const source = this.context.createMediaStreamSource(stream);
    const analyser = this.context.createAnalyser();
    analyser.fftSize = 1024;
    source.connect(analyser);
    this.taps.push({ source, analyser, bar, samples: new Float32Array(analyser.fftSize), level: 0 });
  }

  draw() {
    if (!this.running) return;
    for (const tap of this.taps) {
      tap.analyser.getFloatTimeDomainData(tap.samples);
      const loudness = loudnessOf(tap.samples);
      tap.level = Math.max(loudness, tap.level * 0.88); // rises at once, falls softly
      tap.bar.style.transform = `scaleX(${tap.level.toFixed(3)})`;
    }
    requestAnimationFrame(this.draw);
  }

  close() {
    this.running = false;
    for (const tap of this.taps) {
      tap.source.disconnect();
      tap.bar.style.transform = "scaleX(0)";
    }
    this.taps = [];
    this.context.close();
  }
}

function loudnessOf(samples) {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  const db = 10 * Math.log10(sum / samples.length + 1e-12);
  return Math.min(1, Math.max(0, (db - FLOOR_DB) / (CEILING_DB - FLOOR_DB)));
}
