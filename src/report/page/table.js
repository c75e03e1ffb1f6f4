// The table: sorts by any column.

const byNumber = (get) => (a, b) => {
  const [x, y] = [get(a), get(b)];
  // What has no value stands last, whichever way the rest goes.
  return x === null || y === null ? null : x - y;
};
const byText = (get) => (a, b) => (get(a) < get(b) ? -1 : get(a) > get(b) ? 1 : 0);
const time = (title, get) => ({ title, number: true, compare: byNumber(get), show: (row) => fit(get(row)), get });
const COLUMNS = [
  { title: "#", number: true, compare: byNumber((row) => row.number), show: (row) => String(row.number), get: (row) => row.number },
  { title: "task", compare: byText((row) => row.name), show: (row) => bdi(row.name) },
  { title: "queue", compare: byText((row) => row.queue), show: (row) => row.queue },
  { title: "outcome", compare: byText((row) => row.outcome), show: (row) => bdi(row.outcome) },
  time("declared", (row) => row.declared),
  time("queued", (row) => row.queued),
  time("started", (row) => row.started),
  time("finished", (row) => row.finished),
  time("waited", (row) => row.waited),
  time("ran", (row) => row.ran),
  { title: "polls", number: true, compare: byNumber((row) => row.polls), show: (row) => String(row.polls), get: (row) => row.polls },
  time("longest poll", (row) => row.longest),
  { title: "marks", compare: byText((row) => row.marks.join(", ")), show: (row) => row.marks.join(", ") },
];

/** A sorted copy; equal rows keep the order of their declaration. */
function sorted(list, { column, falling }) {
  const { compare, get } = COLUMNS[column];
  const way = falling ? -1 : 1;
  return [...list].sort((a, b) => {
    const order = compare(a, b);
    if (order !== null) return way * order || a.number - b.number;
    return (get(a) === null) - (get(b) === null) || a.number - b.number;
  });
}

function drawHead(sort, onSort) {
  document.querySelector("#table thead tr").replaceChildren(...COLUMNS.map((column, i) => {
    const mine = sort.column === i;
    const arrow = mine ? (sort.falling ? " ↓" : " ↑") : "";
    const head = html("th", { scope: "col", className: column.number ? "number" : "" },
      html("button", { type: "button", textContent: column.title + arrow, onclick: () => onSort(i) }));
    if (mine) head.setAttribute("aria-sort", sort.falling ? "descending" : "ascending");
    return head;
  }));
}

function drawTable(list) {
  document.querySelector("#table tbody").replaceChildren(...list.map((row) =>
    html("tr", {}, ...COLUMNS.map((column) => {
      const kind = [column.number ? "number" : "text"];
      if (column.title === "task" && row.critical) kind.push("critical");
      if (column.title === "outcome" && row.bad) kind.push("bad");
      return html("td", { className: kind.join(" ") }, column.show(row));
    }))));
}
