// The call as the events tell it. No DOM here: `apply` changes plain data, the views draw it.
// A conversation may take several connections. The server counts turns from 1 in each; here they go on counting.

const KEPT_EVENTS = 50000; // hours of a call; they are kept for the trace only

export function newConversation() {
  return {
    state: { user: "silent", agent: "idle", session_id: null, budget_ms: null, ended: null, last_error: null, continued: false },
    transcript: [], // {role: "user", text, final}, {role: "agent", clauses, heard, done, interrupted}, {role: "note", text}
    reports: [], // turn reports with `call`, in order of turns
    sessions: [], // ids, one per connection
    events: [], // {call, event}, as received
    call: 1,
    before: 0, // turns of earlier connections
  };
}

/** Apply one server event; unknown types change nothing. */
export function apply(talk, event) {
  const { state } = talk;
  if (talk.events.push({ call: talk.call, event }) > KEPT_EVENTS) talk.events.shift();
  switch (event.type) {
    case "session.started":
      begin(talk, event);
      break;
    case "state":
      Object.assign(state, { user: event.user ?? state.user, agent: event.agent ?? state.agent });
      break;
    case "transcript.partial":
    case "transcript.final":
      Object.assign(userLine(talk, event.turn), { text: event.text, final: event.type === "transcript.final" });
      break;
    case "reply.text":
      agentLine(talk, event.turn).clauses[event.clause] = event.text;
      break;
    case "reply.heard":
      agentLine(talk, event.turn).heard = event.text;
      break;
    case "reply.done":
      finishReply(talk, event);
      break;
    case "turn.report":
      keepReport(talk, event.report);
      break;
    case "error":
      state.last_error = { code: event.code, message: event.message };
      break;
    case "session.ended":
      Object.assign(state, { ended: event.reason, user: "silent", agent: "idle" });
      break;
  }
}

function begin(talk, event) {
  const { state, transcript, sessions } = talk;
  Object.assign(state, { session_id: event.session_id, budget_ms: event.budget_ms, continued: Boolean(event.continued) });
  sessions.push(event.session_id);
  const last = transcript[transcript.length - 1];
  if (last?.role !== "note") return;
  last.text = event.continued ? "Connected again." : "Connected again. The agent does not remember what was said before.";
}

/** The connection is lost: close what is open, and expect the next one. */
export function loseConnection(talk) {
  for (const entry of talk.transcript) {
    if (entry.call !== talk.call) continue;
    if (entry.role === "agent" && !entry.done) Object.assign(entry, { done: true, interrupted: true });
    if (entry.role === "user") entry.final = true;
  }
  talk.transcript.push({ role: "note", call: talk.call, text: "The connection was lost." });
  talk.before = highestTurn(talk);
  talk.call += 1;
  Object.assign(talk.state, { user: "silent", agent: "idle" });
}

function highestTurn({ transcript, reports }) {
  return Math.max(0, ...[...transcript, ...reports].map((one) => one.turn ?? 0));
}

function userLine(talk, turn) {
  return line(talk, "user", turn, { text: "", final: false });
}

function agentLine(talk, turn) {
  return line(talk, "agent", turn, { clauses: [], heard: "", done: false, interrupted: false });
}

function find({ transcript, call, before }, role, turn) {
  return transcript.find((one) => one.role === role && one.call === call && one.turn === turn + before);
}

function line(talk, role, turn, empty) {
  const found = find(talk, role, turn);
  if (found) return found;
  const made = { role, call: talk.call, turn: turn + talk.before, ...empty };
  talk.transcript.push(made);
  return made;
}

function finishReply(talk, event) {
  if (!find(talk, "agent", event.turn) && !event.heard_text) return; // cancelled before a word: nothing to show
  Object.assign(agentLine(talk, event.turn), {
    heard: event.heard_text ?? "", done: true, interrupted: Boolean(event.interrupted),
  });
}

function keepReport({ reports, call, before }, report) {
  const kept = { ...report, call, turn: report.turn + before };
  const at = reports.findIndex((one) => one.turn === kept.turn && one.call === call);
  if (at >= 0) reports[at] = kept;
  else reports.push(kept);
}

/**
 * Each clause cut into [heard, unheard] text. Heard text is a prefix of the clauses but for white space, so letters
 * are counted, not positions. Text that was heard but is in no clause (events were dropped) becomes a clause of its own.
 */
export function heardParts(entry) {
  let left = letters(entry.heard);
  const parts = [];
  for (const clause of entry.clauses) {
    if (clause === undefined) continue;
    let cut = 0;
    while (cut < clause.length && left > 0) {
      if (/\S/.test(clause[cut])) left -= 1;
      cut += 1;
    }
    parts.push([clause.slice(0, cut), clause.slice(cut)]);
  }
  return parts.length || !entry.heard ? parts : [[entry.heard, ""]];
}

function letters(text) {
  return text.replace(/\s+/g, "").length;
}
