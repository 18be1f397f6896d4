// A table that can be sorted, searched, paged and exported; only one page of it is ever in the document.
const PAGE = 15;

/// `columns`: [{ name, at, numeric, format }], `at` being the place among the fields; `records`: [{ text, fields }], `text`
/// being what an export writes.
function dataTable(host, { caption, columns, records, header, file }) {
  let shown = records, sorted = null, page = 0;
  const search = element("input", undefined, { type: "search", placeholder: "search", "aria-label": `Search ${caption}` });
  const save = element("button", "Export CSV", { type: "button" });
  const controls = element("div", undefined, { class: "controls" });
  controls.append(search, save);
  const table = element("table");
  const body = element("tbody");
  const head = element("tr");
  const headers = columns.map(({ name, numeric }, c) => {
    const cell = element("th", undefined, { scope: "col", "aria-sort": "none", ...(numeric && { class: "num" }) });
    const button = element("button", name, { type: "button" });
    button.addEventListener("click", () => sort(c));
    cell.append(button);
    head.append(cell);
    return cell;
  });
  const thead = element("thead");
  thead.append(head);
  table.append(element("caption", caption, { class: "hint" }), thead, body);
  const scroll = element("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": caption });
  scroll.append(table);
  const status = element("span", "", { role: "status" });
  const buttons = [["|◂", "First page"], ["◂", "Previous page"], ["▸", "Next page"], ["▸|", "Last page"]]
    .map(([text, label]) => element("button", text, { type: "button", "aria-label": label }));
  const pager = element("div", undefined, { class: "pager" });
  pager.append(...buttons, status);
  host.replaceChildren(controls, scroll, pager);

  const last = () => Math.max(0, Math.ceil(shown.length / PAGE) - 1);
  function key(record, c) {
    const text = record.fields[columns[c].at];
    return columns[c].numeric ? (text === "" ? NaN : Number(text.replace(/inf$/, "Infinity"))) : text;
  }

  function fill() {
    body.replaceChildren(...shown.slice(page * PAGE, (page + 1) * PAGE).map((record) => {
      const row = element("tr");
      columns.forEach(({ numeric, format }, c) => row.append(element("td", format ? format(key(record, c)) : key(record, c), numeric ? { class: "num" } : {})));
      return row;
    }));
    buttons[0].disabled = buttons[1].disabled = page === 0;
    buttons[2].disabled = buttons[3].disabled = page === last();
    const from = shown.length ? page * PAGE + 1 : 0;
    status.textContent = `${from} to ${Math.min(shown.length, (page + 1) * PAGE)} of ${shown.length}${shown.length < records.length ? ` found among ${records.length}` : ""}`;
  }

  /// Ascending, then descending, then the order of the file.
  function sort(c) {
    if (!sorted || sorted.column !== c) sorted = { column: c, sign: 1 };
    else if (sorted.sign === 1) sorted.sign = -1;
    else sorted = null;
    headers.forEach((cell, k) => cell.setAttribute("aria-sort", !sorted || sorted.column !== k ? "none" : sorted.sign === 1 ? "ascending" : "descending"));
    arrange();
  }

  function arrange() {
    const words = search.value.trim().toLowerCase();
    shown = words ? records.filter((r) => r.fields.some((f) => f.toLowerCase().includes(words))) : records;
    if (sorted) {
      const { column, sign } = sorted;
      const compare = columns[column].numeric ? (a, b) => (Number.isNaN(a) ? 1 : 0) - (Number.isNaN(b) ? 1 : 0) || a - b : (a, b) => a.localeCompare(b);
      const keyed = shown.map((record) => [key(record, column), record]);
      shown = keyed.sort((a, b) => sign * compare(a[0], b[0])).map(([, record]) => record);
    }
    page = 0;
    fill();
  }

  buttons.forEach((button, k) => button.addEventListener("click", () => {
    page = [0, Math.max(0, page - 1), Math.min(last(), page + 1), last()][k];
    fill();
  }));
  search.addEventListener("input", arrange);
  save.addEventListener("click", () => download(file, header + shown.map((r) => r.text).join("")));
  fill();
}

/// The figures of the headline.
function fillCards() {
  byId("cards").replaceChildren(...report.cards.map(({ title, value, detail }) => {
    const card = element("div");
    card.append(element("dt", title), element("dd", value, { class: "value" }), element("dd", detail, { class: "detail" }));
    return card;
  }));
}

/// The table of suspects, `where` saying what they were seen by.
function fillSuspects(where) {
  if (report.suspects === null) return byId("suspects").remove();
  const [header, ...records] = parseCsv(report.suspects);
  const numeric = header.fields.map((_, c) => records.every((r) => r.fields[c] === "" || !Number.isNaN(Number(r.fields[c].replace(/^-?inf$/, "0")))));
  const columns = header.fields
    .map((name, at) => ({ name: name.replaceAll("_", " "), at, numeric: numeric[at], format: numeric[at] ? (v) => show(v, 5) : null }))
    .filter(({ at }) => records.some((r) => r.fields[at] !== ""));
  byId("suspectshint").textContent = `All training rows, most suspicious first, ${where}. The export holds the rows found, in the order shown, with all digits.`;
  dataTable(byId("suspectstable"), { caption: "Training rows by suspicion", columns, records, header: header.text, file: "suspects.csv" });
}
