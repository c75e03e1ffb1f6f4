// From times to places. Proportional, but for long stretches in which nothing happens: those may be folded.

const FOLD = 44;
/** Room behind the last bar for what is written there. */
const MARGIN = 110;

/** The moments at which anything begins or ends. */
function wholeRun() {
  let to = Math.max(gateAt ?? 0, ...longTasks.map((long) => long.end));
  for (const row of rows) {
    to = Math.max(to, row.started !== null ? row.end : row.finished ?? row.queued ?? row.declared);
    if (row.started === null && row.finished === null) to = Math.max(to, taken);
  }
  return { from: 0, to: to > 0 ? to : Math.max(taken, 1) };
}

/** Stretches of more than a fifth of the run in which nothing runs, freezes or opens, without their edges. */
function quietStretches(run) {
  const busy = [[0, 0], [run.to, run.to], ...longTasks.map((long) => [long.start, long.end])];
  if (gateAt !== null) busy.push([gateAt, gateAt]);
  for (const row of rows) {
    if (row.started !== null) busy.push([row.started, row.end]);
    for (const hold of row.holds) busy.push([hold.since, hold.until]);
  }
  busy.sort((a, b) => a[0] - b[0]);
  const gaps = [];
  let reached = 0;
  for (const [from, to] of busy) {
    if (from - reached > (run.to - run.from) / 5) gaps.push([reached, from]);
    reached = Math.max(reached, to);
  }
  const rest = run.to - gaps.reduce((sum, [from, to]) => sum + to - from, 0);
  return gaps.map(([from, to]) => {
    const edge = Math.min(rest * 0.06, (to - from) / 4);
    return [from + edge, to - edge];
  });
}

/** Pieces of the axis, each linear, all unfolded ones with the same pixels a millisecond. */
function makeScale(view, whole, folds) {
  const width = whole - MARGIN;
  const inside = folds.filter(([from, to]) => from > view.from && to < view.to);
  const folded = inside.reduce((sum, [from, to]) => sum + to - from, 0);
  const rate = (width - FOLD * inside.length) / (view.to - view.from - folded);
  const pieces = [];
  let [time, x] = [view.from, 0];
  const add = (to, wide, fold) => {
    pieces.push({ from: time, to, x, wide, fold });
    [time, x] = [to, x + wide];
  };
  for (const [from, to] of inside) {
    add(from, (from - time) * rate, false);
    add(to, FOLD, true);
  }
  add(view.to, (view.to - time) * rate, false);
  const at = (moment) => {
    const t = Math.min(Math.max(moment, view.from), view.to);
    const piece = pieces.find((p) => t <= p.to) ?? pieces[pieces.length - 1];
    return piece.x + (piece.to > piece.from ? ((t - piece.from) / (piece.to - piece.from)) * piece.wide : 0);
  };
  const back = (place) => {
    const piece = pieces.find((p) => place <= p.x + p.wide) ?? pieces[pieces.length - 1];
    return piece.from + (piece.wide > 0 ? ((place - piece.x) / piece.wide) * (piece.to - piece.from) : 0);
  };
  return { at, back, pieces, rate, width, whole, view };
}

/** Round moments, about 90 pixels apart, in each unfolded piece. */
function ticks(scale) {
  const rough = 90 / scale.rate;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((n) => n * power >= rough) ?? 10);
  const [unit, name] = scale.view.to < 1 ? [1e-3, "µs"] : scale.view.to < 1e3 ? [1, "ms"] : [1e3, "s"];
  const digits = Math.min(9, Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9)));
  const marks = [];
  const last = scale.pieces[scale.pieces.length - 1];
  for (const piece of scale.pieces) {
    if (piece.fold) continue;
    for (let n = Math.ceil(piece.from / step); n * step <= piece.to && marks.length < 200; n++) {
      const x = scale.at(n * step);
      const room = piece === last || piece.x + piece.wide - x >= 40;
      marks.push({ x, text: room ? `${((n * step) / unit).toFixed(digits)} ${name}` : "" });
    }
  }
  return marks;
}

/** The largest number of running tasks at each pixel. */
function runningTasks(scale) {
  const changes = [];
  for (const row of rows) {
    if (row.started !== null) changes.push([row.started, 1], [row.end, -1]);
  }
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const most = new Array(Math.ceil(scale.width) + 1).fill(0);
  let [count, since] = [0, 0];
  for (const [time, by] of changes) {
    if (count > 0 && time >= scale.view.from && since <= scale.view.to) {
      for (let x = Math.floor(scale.at(since)); x <= scale.at(time); x++) most[x] = Math.max(most[x], count);
    }
    [count, since] = [count + by, time];
  }
  return most;
}
