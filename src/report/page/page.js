// What the reader does: search, sort, fold, zoom, hover, keys, print.

const run = wholeRun();
const quiet = quietStretches(run);
const inOrder = [...rows].sort((a, b) => (a.started ?? Infinity) - (b.started ?? Infinity) || a.number - b.number);
const state = { query: "", onlyChain: false, fold: true, view: null, page: 0, tablePage: 0, sort: { column: 0, falling: false } };
let drawn = null;
let visibleRows = [];

const find = (id) => document.getElementById(id);
const fits = (row) => row.text.includes(state.query) && (!state.onlyChain || row.critical);

/** What was asked for; else the whole run, or where there are many pages, the time of this one. */
function viewOf(list, shownRows) {
  const ran = shownRows.filter((row) => row.started !== null);
  if (state.view || list.length <= PAGE || ran.length === 0) return state.view ?? run;
  const to = ran.reduce((latest, row) => Math.max(latest, row.end), 0);
  const from = Math.min(ran[0].started, to);
  return to > from ? { from, to } : run;
}

function drawBars(printWidth) {
  const list = inOrder.filter(fits);
  visibleRows = list.slice(state.page * PAGE, (state.page + 1) * PAGE);
  const view = viewOf(list, visibleRows);
  drawn = drawWaterfall(visibleRows, view, state.fold ? quiet : [], printWidth);
  pager(find("waterfall-pages"), state.page, list.length, (page) => {
    state.page = page;
    state.view = null;
    chart.scrollTop = 0;
    drawBars();
  });
  find("found").textContent = list.length === rows.length ? `${rows.length} tasks` : `${list.length} of ${rows.length} tasks`;
  find("whole").hidden = view === run;
}

function drawTasks() {
  const list = sorted(rows.filter(fits), state.sort);
  drawHead(state.sort, (column) => {
    state.sort = { column, falling: state.sort.column === column && !state.sort.falling };
    state.tablePage = 0;
    drawTasks();
    document.querySelectorAll("#table th button")[column].focus();
  });
  drawTable(list.slice(state.tablePage * PAGE, (state.tablePage + 1) * PAGE));
  pager(find("table-pages"), state.tablePage, list.length, (page) => {
    state.tablePage = page;
    drawTasks();
  });
}

function filter() {
  state.query = find("search").value.trim().toLowerCase();
  state.onlyChain = find("only-chain").checked;
  state.page = state.tablePage = 0;
  hideTip();
  drawBars();
  drawTasks();
}

// --- the tip --------------------------------------------------------------------------------------------------------

const tip = find("tip");
const hideTip = () => {
  tip.hidden = true;
  bars.querySelector(".hover")?.setAttribute("visibility", "hidden");
};

function tipFor(row) {
  const facts = [
    ["outcome", row.outcome],
    ["queue", row.queue],
    ["declared", fit(row.declared)],
    ["queued", fit(row.queued)],
    ["started", fit(row.started)],
    ["finished", fit(row.finished)],
    ["waited", fit(row.waited)],
    ["ran", fit(row.ran)],
    ["polls", row.polls > 0 ? `${row.polls}, longest ${fit(row.longest)}` : "–"],
    ["after", row.task.waited_for.join(", ")],
    ["awaited", row.task.awaited.join(", ")],
    ...row.holds.map((hold) => ["held", `${fit(hold.until - hold.since)} by ${hold.why}`]),
    ["marks", [row.critical && "critical chain", ...row.marks].filter(Boolean).join(", ")],
  ];
  const list = facts.filter(([, text]) => text !== "").flatMap(([key, text]) =>
    [html("dt", { textContent: key }), html("dd", {}, bdi(text, 300))]);
  return [html("h3", {}, bdi(row.name, 300)), html("dl", {}, ...list)];
}

function showTip(content, x, y) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const [wide, tall] = [tip.offsetWidth, tip.offsetHeight];
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - wide - 8))}px`;
  tip.style.top = `${y + 18 + tall < innerHeight ? y + 18 : Math.max(4, y - tall - 14)}px`;
}

/** Of the row at this place; the application's own row says what the bar says. */
function tipAt(place, element, x, y) {
  const row = visibleRows[place - 1];
  const label = element?.getAttribute("aria-label");
  if (!row && !label) return hideTip();
  showTip(row ? tipFor(row) : [bdi(label, 1000)], x, y);
  const hover = bars.querySelector(".hover");
  hover.setAttribute("y", place * drawn.high);
  hover.setAttribute("visibility", "visible");
}

// Not on the picture itself: what listens for the focus can be given it.
const board = find("rows");
board.addEventListener("pointermove", (event) => {
  const place = Math.floor((event.clientY - bars.getBoundingClientRect().top) / drawn.high);
  tipAt(place, event.target.closest(".bar"), event.clientX, event.clientY);
});
board.addEventListener("pointerleave", hideTip);
chart.addEventListener("scroll", () => {
  if (document.activeElement?.closest?.("#bars") === null) hideTip();
});

// --- keys: one stop for the whole waterfall, arrows inside it ----------------------------------------------------------

board.addEventListener("focusin", (event) => {
  bars.querySelectorAll('[tabindex="0"]').forEach((other) => other.setAttribute("tabindex", -1));
  event.target.setAttribute("tabindex", 0);
  const box = event.target.getBoundingClientRect();
  tipAt(Number(event.target.dataset.row), event.target, Math.max(box.left, 0), box.bottom - 8);
});
board.addEventListener("focusout", hideTip);
board.addEventListener("keydown", (event) => {
  const all = [...bars.querySelectorAll(".bar")];
  const here = all.indexOf(event.target);
  const row = (element) => Number(element.dataset.row);
  const last = (list) => list[list.length - 1];
  // Up and down stay with what is being looked at: the run where there is one.
  const next = {
    ArrowRight: () => all[here + 1],
    ArrowLeft: () => all[here - 1],
    ArrowDown: () => { const below = all.find((bar) => row(bar) > row(event.target)); return below && last(all.filter((bar) => row(bar) === row(below))); },
    ArrowUp: () => last(all.filter((bar) => row(bar) < row(event.target))),
    Home: () => all[0],
    End: () => last(all),
  }[event.key];
  if (event.key === "Escape") hideTip();
  if (!next) return;
  event.preventDefault();
  next()?.focus();
});

// --- zoom: drag over the strip ------------------------------------------------------------------------------------------

let dragged = null;
const placeOf = (event) => {
  const box = strip.getBoundingClientRect();
  return ((event.clientX - box.left) / box.width) * drawn.scale.whole;
};
strip.addEventListener("pointerdown", (event) => {
  const box = svg("rect", { class: "select", y: 0, height: STRIP, x: placeOf(event), width: 0 });
  strip.append(box);
  strip.setPointerCapture(event.pointerId);
  dragged = { from: placeOf(event), box };
});
strip.addEventListener("pointermove", (event) => {
  if (!dragged) return;
  const to = placeOf(event);
  dragged.box.setAttribute("x", Math.min(dragged.from, to));
  dragged.box.setAttribute("width", Math.abs(to - dragged.from));
});
strip.addEventListener("pointerup", (event) => {
  if (!dragged) return;
  const [from, to] = [dragged.from, placeOf(event)].sort((a, b) => a - b).map(drawn.scale.back);
  const wide = Math.abs(placeOf(event) - dragged.from);
  dragged = null;
  if (wide > 4 && to > from) state.view = { from: Math.max(run.from, from), to: Math.min(run.to, to) };
  drawBars();
});
find("whole").addEventListener("click", () => {
  state.view = run;
  drawBars();
});

// --- the rest -----------------------------------------------------------------------------------------------------------

find("search").addEventListener("input", filter);
find("only-chain").addEventListener("change", filter);
find("fold").addEventListener("change", () => {
  state.fold = find("fold").checked;
  drawBars();
});
document.querySelector(".tools").addEventListener("submit", (event) => event.preventDefault());
find("fold-label").hidden = quiet.length === 0;
const there = {
  hold: rows.some((row) => row.holds.length > 0),
  monkey: rows.some((row) => row.monkey !== null),
  demanded: rows.some((row) => row.task.demanded || row.task.demanded_by_governor),
  stuck: rows.some((row) => row.task.stuck),
  lent: rows.some((row) => row.task.awaited.length > 0),
  long: longTasks.length > 0,
  gate: gateAt !== null,
};
for (const item of document.querySelectorAll("[data-of]")) item.hidden = !there[item.dataset.of];
drawTasks();
let width = 0;
new ResizeObserver(() => {
  if (bars.clientWidth !== width) drawBars();
  width = bars.clientWidth;
}).observe(chart);
drawBars();
addEventListener("beforeprint", () => drawBars(820));
addEventListener("afterprint", () => drawBars());
