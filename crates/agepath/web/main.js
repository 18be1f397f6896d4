// Fills the page, joins the panels to the slider.
const SLIDER = 2000;
const root = document.documentElement;
const slider = byId("age");
const last = ages.length - 1;

function start() {
  document.title = report.title;
  byId("title").textContent = report.title;
  theme();
  fillWords();
  fillTables();
  fillValues();
  for (const panel of panels) {
    const host = byId(panel.id);
    panel.chart = echarts.init(host, null, { renderer: "canvas" });
    host.setAttribute("role", "img");
    if (panel.onAge) {
      panel.cursor = element("div", undefined, { class: "cursor" });
      host.append(panel.cursor);
      panel.chart.getZr().on("click", (e) => clickAge(panel, e));
    }
    panel.start?.(panel.chart);
  }
  draw();
  listen();
  const chosen = report.marks[0];
  go(chosen ? nearest(ages, chosen.age) : Math.floor(last / 2));
  root.dataset.ready = "yes";
}

function fillWords() {
  const { length: count } = ages;
  fillCards();
  byId("tracestitle").textContent = `${traces.title} over age`;
  const hidden = lines > MAX_DRAWN_LINES ? ` Only the ${MAX_DRAWN_LINES} largest of ${lines} lines are drawn; the table has all.` : "";
  byId("traceshint").textContent = `Every age is on the line; the ${Math.min(LINES, lines)} largest are highlighted. Click a line or a name to see it alone, click empty space to move the age. Ticks at the bottom are turning points, triangles are jumps.${hidden}`;
  byId("unitlabel").hidden = traces.units.every((u) => u === 1);
  if (learning) byId("learninghint").textContent = `${learning.metric}: ${learning.summary}, on ${learning.judge}; ${learning.higher_is_better ? "higher" : "lower"} is better.`;
  else {
    byId("learning").remove();
    byId("residuals").classList.add("wide");
  }
  byId("zoneshint").textContent = `Counted over all training rows at ${count} stored ages.`;
  const total = states.counts.slice(0, states.zones.length).reduce((a, b) => a + b, 0);
  const some = drawn < total ? ` ${drawn} of ${total} rows are drawn, evenly by rank; counts and tables cover all.` : "";
  byId("weightshint").textContent = `One line per row, the most suspicious at the top.${some}`;
  byId("residualstitle").textContent = classes ? "Margins at the slider's age" : "Residuals at the slider's age";
  byId("residualshint").textContent = classes
    ? `Target (±1) times decision value; below 0 the row is on the wrong side. The stronger the colour, the more weight.${some}`
    : `In units of “${report.target}”. The stronger the colour, the more weight.${some}`;
  byId("criticalhint").textContent = "A turning point changes a set and bends the path; at a jump the solution itself moves.";
  byId("commandbox").hidden = report.command === null;
  byId("command").textContent = report.command ?? "";
  byId("facts").replaceChildren(...report.facts.map(({ title, items }) => {
    const block = element("div"), list = element("dl");
    for (const [name, value] of items) list.append(element("dt", name), element("dd", value));
    block.append(element("h3", title), list);
    return block;
  }));
  byId("markbuttons").replaceChildren(...report.marks.map(({ age, label }) => {
    const button = element("button", `${label} age`, { type: "button" });
    button.addEventListener("click", () => go(nearest(ages, age)));
    return button;
  }));
}

function fillTables() {
  fillSuspects("at the chosen age");
  const number = (name, at) => ({ name, at, numeric: true, format: (v) => show(v, 4) });
  const quote = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const records = jumps.map(({ age, size, drop, cause }) => ({ fields: [String(age), String(size), String(drop), cause], text: `${age},${size},${drop},${quote(cause)}\n` }));
  if (records.length) dataTable(byId("jumpstable"), {
    caption: "Jumps: size is the distance the solution moves, drop how much the objective falls",
    columns: [...["age", "size", "drop"].map(number), { name: "cause", at: 3, numeric: false }], records, header: "age,size,drop,cause\n", file: "jumps.csv",
  });
  else byId("jumpstable").replaceChildren(element("p", "There are no jumps on this path.", { class: "hint" }));
}

/// The names beside the first plot; a button each, so that the keyboard reaches what a click on a line does.
function fillValues() {
  byId("values").replaceChildren(...ranked.map((j) => {
    const row = element("tr", undefined, { "data-line": j });
    const button = element("button", undefined, { type: "button", class: "line", "aria-pressed": String(isolated === j) });
    const swatch = element("span", undefined, { class: "swatch" });
    const { color, dash } = look(j);
    swatch.style.borderTopColor = color;
    swatch.style.borderTopStyle = dash;
    button.append(swatch, element("span", traces.names[j], { class: "name", title: traces.names[j] }));
    button.addEventListener("click", () => isolate(j));
    const name = element("td");
    name.append(button);
    row.append(name, element("td", show(lineValue(current, j), 6), { class: "num" }));
    return row;
  }));
}

/// Shows line j alone; the same line again shows all.
function isolate(j) {
  isolated = isolated === j ? null : j;
  byId("showall").disabled = isolated === null;
  for (const row of byId("values").rows) row.querySelector("button").setAttribute("aria-pressed", String(Number(row.dataset.line) === isolated));
  redraw(pathsPanel);
}

function redraw(panel) {
  panel.chart.setOption(panel.option(panel.chart), { notMerge: true });
  place(panel);
}

function draw() {
  panels.forEach(redraw);
}

/// Puts a panel's line where the slider is.
function place(panel) {
  if (!panel.onAge) return;
  const x = panel.chart.convertToPixel({ xAxisIndex: 0 }, toAxis(ages[current]));
  const top = panel === weightsPanel ? 12 : GRID.top;
  Object.assign(panel.cursor.style, { left: `${x - 1}px`, top: `${top}px`, height: `${panel.chart.getHeight() - top - GRID.bottom}px` });
}

const share = (k) => (last ? (toAxis(ages[k]) - toAxis(ages[0])) / (toAxis(ages[last]) - toAxis(ages[0])) : 0);
const isJump = (k) => (k < last && ages[k] === ages[k + 1]) || (k > 0 && ages[k] === ages[k - 1]);

/// Moves everything to stored age k.
function go(k) {
  current = Math.min(last, Math.max(0, k));
  slider.value = Math.round(share(current) * SLIDER);
  const mark = report.marks.find((m) => m.age === ages[current]);
  const side = current < last && ages[current] === ages[current + 1] ? "lower side of a jump" : isJump(current) ? "upper side of a jump" : null;
  byId("agevalue").textContent = show(ages[current], 6);
  byId("agenote").textContent = [`exact solution ${current + 1} of ${ages.length}`, mark && `the ${mark.label} age`, side].filter(Boolean).join(" · ");
  slider.setAttribute("aria-valuetext", `age ${show(ages[current], 6)}${side ? `, ${side}` : ""}`);
  byId("prevjump").disabled = !ages.subarray(0, current).some((_, j) => isJump(j));
  byId("nextjump").disabled = !ages.some((_, j) => j > current && isJump(j));
  for (const panel of panels) {
    panel.move(current, panel.chart);
    place(panel);
    byId(panel.id).setAttribute("aria-label", panel.alt());
  }
}

/// The stored age next to a share of the axis.
function nearestShare(s) {
  let best = 0;
  for (let k = 1; k <= last; k++) if (Math.abs(share(k) - s) < Math.abs(share(best) - s)) best = k;
  return best;
}

function clickAge(panel, e) {
  if (!panel.chart.containPixel("grid", [e.offsetX, e.offsetY])) return;
  if (panel === pathsPanel && e.target) return;
  go(nearest(ages, fromAxis(panel.chart.convertFromPixel({ xAxisIndex: 0 }, e.offsetX))));
}

function toJump(direction) {
  let k = current + direction;
  while (k > 0 && k < last && !isJump(k)) k += direction;
  go(k);
}

function theme() {
  const asked = byId("theme").value;
  const dark = asked === "dark" || (asked === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = dark ? "dark" : "light";
}

const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };

function listen() {
  let asked = null;
  slider.addEventListener("input", () => {
    // Many events may come within one frame of the screen; only the last one counts.
    if (asked === null) requestAnimationFrame(() => { const s = asked; asked = null; go(nearestShare(s)); });
    asked = Number(slider.value) / SLIDER;
  });
  slider.addEventListener("keydown", (e) => {
    if (!(e.key in KEYS)) return;
    e.preventDefault();
    go(current + KEYS[e.key]);
  });
  byId("typed").addEventListener("change", (e) => {
    const age = Number(e.target.value.replace(",", "."));
    if (age > 0) go(nearest(ages, age));
  });
  byId("prevjump").addEventListener("click", () => toJump(-1));
  byId("nextjump").addEventListener("click", () => toJump(1));
  byId("showall").addEventListener("click", () => isolate(isolated));
  byId("scale").addEventListener("change", (e) => { scale = e.target.value; draw(); go(current); });
  byId("units").addEventListener("change", (e) => { units = e.target.value; ranked = bySize(); fillValues(); redraw(pathsPanel); go(current); });
  const recolor = () => { theme(); fillValues(); draw(); go(current); };
  byId("theme").addEventListener("change", recolor);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
  byId("copy").addEventListener("click", () => navigator.clipboard?.writeText(report.command));
  let waiting = null;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(resize, 100); });
  addEventListener("beforeprint", () => { root.dataset.theme = "light"; fillValues(); resize(); });
  addEventListener("afterprint", recolor);
}

function resize() {
  for (const panel of panels) panel.chart.resize();
  draw();
}

start();
