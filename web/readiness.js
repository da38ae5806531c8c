// While the models load: asks the server how far it is, and shows it.

import { byId } from "./dom.js";

const POLL_MS = 1000;

/** Watch until calls are accepted. `tell(text)` gets what is still to come, at last null. One watch at a time. */
export async function watchLoading(tell) {
  if (watchLoading.running) return;
  watchLoading.running = true;
  let most = 0;
  for (let progress = await askProgress(); progress; progress = await askProgress()) {
    const names = Array.isArray(progress.loading) ? progress.loading : [];
    const left = names.length;
    most = Math.max(most, left);
    byId("loading").hidden = false;
    byId("loading-bar").max = Math.max(most, 1);
    byId("loading-bar").value = most - left;
    tell(`Loading ${names.join(", ") || "the models"} …`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  byId("loading").hidden = true;
  watchLoading.running = false;
  tell(null);
}

/** The server's progress while it is loading, otherwise null. */
async function askProgress() {
  try {
    const response = await fetch("readyz", { cache: "no-store" });
    return response.status === 503 ? ((await response.json()).progress ?? {}) : null;
  } catch {
    return null; // no server, or not ours: starting a call will say so
  }
}
