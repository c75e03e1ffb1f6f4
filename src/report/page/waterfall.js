// The waterfall: the application's row, then a row a task in the order of their starts.

const chart = document.getElementById("chart");
const bars = document.getElementById("bars");
const strip = document.getElementById("strip");
const names = document.getElementById("names");
const STRIP = 72;

/** A bar of its own: drawn to scale, reached by hover and keyboard, and saying what it is. */
function bar(at, row, kind, from, to, y, height, label) {
  const [x, end] = [at(from), at(to)];
  const element = svg("rect", {
    class: `bar ${kind}`, x, y, width: Math.max(end - x, 1.5), height, rx: Math.min(2, height / 2),
    tabindex: -1, role: "img", "aria-label": shown(label, 1000), "data-row": row,
  });
  return element;
}

function drawWaterfall(list, view, folds, printWidth) {
  const width = Math.max(200, printWidth ?? bars.clientWidth);
  const scale = makeScale(view, width, folds);
  const dense = list.length > 60;
  const high = dense ? 16 : 24;
  const height = (list.length + 1) * high;
  chart.classList.toggle("dense", dense);
  for (const [element, tall] of [[bars, height], [strip, STRIP]]) {
    element.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    element.setAttribute("height", tall);
    element.setAttribute("preserveAspectRatio", "none");
  }
  const parts = [...ground(scale, height)];
  for (const long of longTasks) parts.push(...longTask(scale, long, high, height));
  if (gateAt !== null && gateAt >= view.from && gateAt <= view.to) {
    const x = scale.at(gateAt);
    parts.push(svg("path", { class: "gate", d: `M${x} 0V${height}` }));
  }
  const places = new Map(list.map((row, i) => [row.number, i + 1]));
  parts.push(...chainLinks(scale, places, high));
  list.forEach((row, i) => parts.push(taskRow(scale, row, i + 1, high)));
  parts.push(svg("rect", { class: "hover", x: 0, y: 0, width, height: high, visibility: "hidden" }));
  bars.replaceChildren(...parts);
  const first = bars.querySelector(".bar");
  if (first) first.setAttribute("tabindex", 0);

  const label = (text, kind) => {
    const element = html("div", { className: kind }, text);
    element.style.height = element.style.lineHeight = `${high}px`;
    return element;
  };
  names.replaceChildren(label("application", "application"), ...list.map((row) =>
    label(bdi(row.name), row.critical ? "critical" : row.started === null ? "none" : "")));
  drawStrip(scale);
  return { scale, high };
}

function ground(scale, height) {
  const parts = ticks(scale).map(({ x }) => svg("path", { class: "grid", d: `M${x} 0V${height}` }));
  for (const piece of scale.pieces.filter((piece) => piece.fold)) {
    parts.push(svg("rect", { class: "fold", x: piece.x, y: 0, width: piece.wide, height }));
    for (const x of [piece.x, piece.x + piece.wide]) parts.push(svg("path", { class: "fold-edge", d: `M${x} 0V${height}` }));
  }
  return parts;
}

function longTask(scale, long, high, height) {
  if (long.end < scale.view.from || long.start > scale.view.to) return [];
  const [x, end] = [scale.at(long.start), scale.at(long.end)];
  const where = long.worker === null ? "" : `, worker ${long.worker}`;
  const label = `long task of ${fit(long.length)} at ${fit(long.start)} by ${long.who}${where}`;
  return [
    svg("rect", { class: "band", x, y: 0, width: Math.max(end - x, 1), height }),
    bar(scale.at, 0, "long", long.start, long.end, 4, high - 8, label),
  ];
}

/** From each task of the critical chain to the next one, where both are shown. */
function chainLinks(scale, places, high) {
  const byNumber = new Map(rows.map((row) => [row.number, row]));
  const links = [];
  for (let i = 1; i < data.chain.length; i++) {
    const [from, to] = [data.chain[i - 1], data.chain[i]];
    if (!places.has(from) || !places.has(to)) continue;
    const middle = (number) => (places.get(number) + 0.5) * high;
    const [x, end] = [scale.at(byNumber.get(from).end), scale.at(byNumber.get(to).started)];
    links.push(svg("path", { class: "link", d: `M${x} ${middle(from)}V${middle(to)}H${end}` }));
  }
  return links;
}

function taskRow(scale, row, place, high) {
  const { at, view } = scale;
  const middle = (place + 0.5) * high;
  const tall = high > 20 ? 14 : 10;
  const group = svg("g", { class: "row" });
  const visible = (from, to) => from <= view.to && to >= view.from;
  const add = (kind, from, to, size, label) => {
    if (visible(from, to)) group.append(bar(at, place, kind, from, to, middle - size / 2, size, `${row.name}: ${label}`));
  };
  const until = row.started ?? row.end;
  if (row.queued !== null) {
    if (visible(row.declared, row.queued) && row.queued > row.declared) {
      group.append(svg("path", { class: "before", d: `M${at(row.declared)} ${middle}H${at(row.queued)}` }));
    }
    add("wait", row.queued, until, 4, `waited ${fit(until - row.queued)}`);
  }
  for (const hold of row.holds) add("hold", hold.since, hold.until, tall - 4, `held ${fit(hold.until - hold.since)} by ${hold.why}`);
  if (row.monkey) add("monkey", ...row.monkey, tall - 4, "delayed by the monkey");
  if (row.started !== null) {
    const kind = ["run", row.bad ? "bad" : row.queue, row.critical && "critical", row.task.awaited.length > 0 && "lent"];
    const says = [`ran ${fit(row.end - row.started)} from ${fit(row.started)}`, row.outcome, ...row.marks];
    add(kind.filter(Boolean).join(" "), row.started, row.end, tall, says.join(", "));
    if (row.task.stuck && visible(row.started, row.end)) {
      const [x, end] = [at(row.started), at(row.end)];
      group.append(svg("rect", { class: "stuck", x, y: middle - tall / 2, width: Math.max(end - x, 1.5), height: tall }));
    }
    if ((row.task.demanded || row.task.demanded_by_governor) && visible(row.started, row.started)) {
      const x = at(row.started);
      group.append(svg("path", { class: "demanded", d: `M${x - 4} ${middle - 6} ${x + 5} ${middle} ${x - 4} ${middle + 6}Z` }));
    }
  } else if (visible(row.end, row.end)) {
    const x = Math.max(at(row.end), 7);
    const element = bar(at, place, "none", row.end, row.end, middle - 4, 8, `${row.name}: ${row.outcome}`);
    for (const [key, value] of Object.entries({ x: x - 4, width: 8, transform: `rotate(45 ${x} ${middle})` })) element.setAttribute(key, value);
    group.append(element);
  }
  const text = note(scale, row, middle);
  if (text) group.append(text);
  return group;
}

/** What the bar alone does not say, behind it, or before it where there is no room. */
function note(scale, row, middle) {
  if (row.end < scale.view.from || (row.started ?? row.end) > scale.view.to) return null;
  const plain = row.outcome === "completed";
  const said = row.marks.filter((mark) => mark !== "promoted" && mark !== "blocking");
  const parts = [row.started !== null ? fit(row.end - row.started) : "", plain ? "" : row.outcome, ...said];
  const text = shown(parts.filter(Boolean).join(" · "), Math.min(60, Math.floor(scale.whole / 6.5) - 2));
  const x = (row.started === null ? Math.max(scale.at(row.end), 7) : scale.at(row.end)) + 8;
  const wide = text.length * 6.2;
  const start = scale.at(row.started ?? row.end) - 10;
  const before = x + wide > scale.whole && start > wide;
  const place = before ? { x: start, "text-anchor": "end" } : { x: Math.max(0, Math.min(x, scale.whole - wide)) };
  return svg("text", { class: "note", y: middle + 4, direction: "ltr", ...place }, text);
}

function drawStrip(scale) {
  const most = runningTasks(scale);
  const limit = Number(/concurrency=(\d+)/.exec(report.profile)?.[1] ?? 0);
  const peak = Math.max(1, limit, ...most);
  const [base, tall] = [STRIP - 20, STRIP - 40];
  const y = (count) => base - (count / peak) * tall;
  const path = most.map((count, x) => `L${x} ${y(count)}H${x + 1}`).join("");
  const parts = [
    svg("path", { class: "area", d: `M0 ${base}${path}V${base}Z` }),
    svg("path", { class: "limit", d: `M0 ${y(limit)}H${scale.width}` }),
    ...ticks(scale).map(({ x, text }) => svg("text", { class: "axis", x: x + 3, y: STRIP - 6 }, text)),
    ...ticks(scale).map(({ x }) => svg("path", { class: "grid", d: `M${x} ${base}V${STRIP}` })),
  ];
  for (const piece of scale.pieces.filter((piece) => piece.fold)) {
    const x = piece.x + piece.wide / 2;
    parts.push(svg("rect", { class: "fold", x: piece.x, y: 0, width: piece.wide, height: STRIP }));
    parts.push(svg("text", { class: "axis", x, y: STRIP - 6, "text-anchor": "middle" }, fit(piece.to - piece.from)));
    for (const place of [x - 2, x + 2]) parts.push(svg("path", { class: "fold-edge", d: `M${place - 4} ${base + 4}L${place + 4} ${base - 10}` }));
  }
  if (gateAt !== null && gateAt >= scale.view.from && gateAt <= scale.view.to) {
    const x = scale.at(gateAt);
    const left = x > scale.whole - 130;
    parts.push(svg("path", { class: "gate", d: `M${x} 0V${STRIP}` }));
    parts.push(svg("text", { class: "axis note gate-note", x: left ? x - 6 : x + 6, y: 12, "text-anchor": left ? "end" : "start" }, `gate opens, ${fit(gateAt)}`));
  }
  strip.replaceChildren(...parts);
  document.querySelector(".corner span").textContent = `running, up to ${Math.max(0, ...most)}`;
}
