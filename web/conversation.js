// The call as the events tell it. No DOM here: `apply` changes plain data, the views draw it.

export function newConversation() {
  return {
    state: { user: "silent", agent: "idle", session_id: null, budget_ms: null, ended: null, last_error: null },
    transcript: [], // {role: "user", turn, text, final} and {role: "agent", turn, clauses, heard, done, interrupted}
    reports: [], // turn reports, in order of turns
  };
}

/** Apply one server event; unknown types change nothing. */
export function apply(conversation, event) {
  const { state } = conversation;
  switch (event.type) {
    case "session.started":
      Object.assign(state, { session_id: event.session_id, budget_ms: event.budget_ms });
      break;
    case "state":
      Object.assign(state, { user: event.user ?? state.user, agent: event.agent ?? state.agent });
      break;
    case "transcript.partial":
    case "transcript.final":
      Object.assign(userLine(conversation, event.turn), { text: event.text, final: event.type === "transcript.final" });
      break;
    case "reply.text":
      agentLine(conversation, event.turn).clauses[event.clause] = event.text;
      break;
    case "reply.heard":
      agentLine(conversation, event.turn).heard = event.text;
      break;
    case "reply.done":
      finishReply(conversation, event);
      break;
    case "turn.report":
      keepReport(conversation, event.report);
      break;
    case "error":
      state.last_error = { code: event.code, message: event.message };
      break;
    case "session.ended":
      Object.assign(state, { ended: event.reason, user: "silent", agent: "idle" });
      break;
  }
}

function userLine(conversation, turn) {
  return line(conversation, "user", turn, () => ({ role: "user", turn, text: "", final: false }));
}

function agentLine(conversation, turn) {
  return line(conversation, "agent", turn, () => ({
    role: "agent", turn, clauses: [], heard: "", done: false, interrupted: false,
  }));
}

function line(conversation, role, turn, make) {
  const found = conversation.transcript.find((one) => one.role === role && one.turn === turn);
  if (found) return found;
  const made = make();
  conversation.transcript.push(made);
  return made;
}

function finishReply(conversation, event) {
  const known = conversation.transcript.some((one) => one.role === "agent" && one.turn === event.turn);
  if (!known && !event.heard_text) return; // cancelled before a word was made: nothing to show
  Object.assign(agentLine(conversation, event.turn), {
    heard: event.heard_text ?? "", done: true, interrupted: Boolean(event.interrupted),
  });
}

function keepReport({ reports }, report) {
  const at = reports.findIndex((one) => one.turn === report.turn);
  if (at >= 0) reports[at] = report;
  else reports.push(report);
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
