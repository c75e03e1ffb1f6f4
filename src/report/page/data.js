"use strict";
// What the page draws from. Names are untrusted text: they reach the page through textContent and attributes only.

const data = JSON.parse(document.getElementById("data").textContent);
const report = data.report;

const millis = (time) => time.secs * 1e3 + time.nanos / 1e6;
const maybe = (time) => (time ? millis(time) : null);

/** A duration in the unit that fits, as the table in the terminal shows it. */
function fit(ms) {
  if (ms === null) return "–";
  if (ms < 1) return `${Math.floor(ms * 1e3)} µs`;
  if (ms < 99.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${ms.toFixed(0)} ms`;
  if (ms < 99950) return `${(ms / 1e3).toFixed(2)} s`;
  if (ms < 6e6) return `${(ms / 1e3).toFixed(0)} s`;
  if (ms < 36e7) return `${(ms / 6e4).toFixed(0)} min`;
  if (ms < 864e7) return `${(ms / 36e5).toFixed(0)} h`;
  return `${(ms / 864e5).toFixed(0)} d`;
}

/** Characters that show nothing, or turn the line, are spelled out; what is too long is cut between characters. */
function shown(text, limit = 200) {
  let out = "";
  let left = limit;
  for (const c of text) {
    if (left-- === 0) return `${out}…`;
    out += /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u.test(c)
      ? `\\u{${c.codePointAt(0).toString(16)}}`
      : c;
  }
  return out;
}

const chain = new Set(data.chain);
const taken = millis(report.taken);
const gateAt = report.gate.open ? millis(report.gate.open.at) : null;
const victim = report.monkey ? report.monkey.victim_number : null;
const holdsOf = new Map();
report.holds.forEach((hold, i) => {
  const held = { since: millis(hold.since), until: millis(hold.until), why: data.reasons[i] };
  holdsOf.set(hold.number, [...(holdsOf.get(hold.number) ?? []), held]);
});
const longTasks = report.long_tasks.map((long, i) => {
  const start = millis(long.start);
  return { start, length: millis(long.length), end: start + millis(long.length), who: data.culprits[i], worker: long.worker };
});

/** From when to when the monkey held the task back, as far as the report says. */
function monkeyDelay(task, started) {
  if (task.number !== victim) return null;
  const delay = millis(report.monkey.delay);
  if (report.monkey.delivery === "delivered" && started !== null) return [Math.max(0, started - delay), started];
  if (report.monkey.delivery === "delaying" && task.queued) return [Math.max(millis(task.queued), taken - delay), taken];
  return null;
}

const rows = [...report.tasks, ...report.late_tasks].map((task, i) => {
  const [queued, started, finished] = [maybe(task.queued), maybe(task.started), maybe(task.finished)];
  const end = finished ?? taken;
  const outcome = data.outcomes[i];
  const bad = task.outcome !== null && ["failed", "panicked", "timed_out", "abandoned", "invalid"].includes(task.outcome.kind);
  const marks = [
    task.demanded && "demanded",
    task.demanded_by_governor && "demanded by the governor",
    task.stuck && "blocked the lane",
    task.awaited.length > 0 && "lent its slot",
    task.number === victim && "monkey’s victim",
    task.promoted && "promoted",
    task.blocking && "blocking",
    task.slow && "slow",
    i >= report.tasks.length && "late",
  ].filter(Boolean);
  return {
    task, number: task.number, name: task.name, queue: task.queue, outcome, bad, marks, queued, started, finished, end,
    declared: millis(task.declared),
    waited: queued !== null && started !== null ? Math.max(0, started - queued) : null,
    ran: started !== null && finished !== null ? Math.max(0, finished - started) : null,
    polls: task.polls,
    longest: task.polls > 0 ? millis(task.longest_poll) : null,
    critical: chain.has(task.number),
    holds: holdsOf.get(task.number) ?? [],
    monkey: monkeyDelay(task, started),
    text: `${task.name}\n${task.queue}\n${outcome}\n${marks.join(" ")}`.toLowerCase(),
  };
});

const html = (name, props = {}, ...children) => {
  const element = Object.assign(document.createElement(name), props);
  element.append(...children);
  return element;
};
const SVG = document.getElementById("bars").namespaceURI;
const svg = (name, attributes = {}, ...children) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
/** A name: kept from turning the text around it. */
const bdi = (text, limit) => html("bdi", { textContent: shown(text, limit) });

/** No more than this many rows are in the page at once. */
const PAGE = 1000;
/** Buttons to the other pages, where there are any. */
function pager(nav, page, count, go) {
  nav.replaceChildren();
  if (count <= PAGE) return;
  const last = Math.ceil(count / PAGE) - 1;
  const button = (text, to) =>
    html("button", { type: "button", textContent: text, disabled: to < 0 || to > last, onclick: () => go(to) });
  const place = `${page * PAGE + 1} to ${Math.min(count, (page + 1) * PAGE)} of ${count}`;
  nav.append(button("Earlier", page - 1), html("span", { textContent: place }), button("Later", page + 1));
}
