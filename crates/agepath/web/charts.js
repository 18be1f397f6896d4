// One object per panel: `option` draws it, `move` follows the slider to stored age k.
const traces = { ...report.traces, values: unpack(report.traces.values), active: unpack(report.traces.active) };
const lines = traces.names.length;
const states = Object.fromEntries(
  Object.entries(report.states).map(([name, value]) => [name, value && value.b !== undefined ? unpack(value) : value]));
const drawn = states.row.length;
const jumps = report.critical.jumps;
const turning = unpack(report.critical.turning);
const MAX_DRAWN_LINES = 150;
const MAX_MARKS = 800;

let isolated = null;
let units = "solver";
let current = 0;

const lineValue = (k, j) => traces.values[k * lines + j] * (units === "user" ? traces.units[j] : 1);
const largest = (j) => { let m = 0; for (let k = 0; k < ages.length; k++) m = Math.max(m, Math.abs(lineValue(k, j))); return m; };
const bySize = () => [...Array(lines).keys()].map((j) => [largest(j), j]).sort((a, b) => b[0] - a[0]).map(([, j]) => j);
let ranked = bySize();

/// How line j looks: the largest ones have a colour and a dash of their own.
function look(j) {
  const k = ranked.indexOf(j);
  return k < LINES ? { color: color(`c${k}`), dash: DASHES[k % DASHES.length], width: 2 } : { color: color("rest"), dash: "solid", width: 1 };
}

/// Vertical lines at the marked ages.
function ageMarks() {
  return {
    silent: true, symbol: "none", lineStyle: { color: color("ink"), type: "solid", width: 1 },
    label: { color: color("ink"), formatter: (p) => p.name, position: "end", distance: 3 },
    data: report.marks.map((m) => ({ name: m.label, xAxis: toAxis(m.age) })),
  };
}

/// Ages that fall on different pixels, so that thousands of marks cost no more than hundreds.
function thinned(list) {
  const width = toAxis(ages[ages.length - 1]) - toAxis(ages[0]) || 1;
  const seen = new Set();
  return [...list].filter((age) => {
    const slot = Math.round(((toAxis(age) - toAxis(ages[0])) / width) * MAX_MARKS);
    return !seen.has(slot) && seen.add(slot);
  });
}

function nearest(list, age) {
  let best = 0;
  for (let k = 1; k < list.length; k++) if (Math.abs(Math.log(list[k] / age)) < Math.abs(Math.log(list[best] / age))) best = k;
  return best;
}

const pathsPanel = {
  id: "chart-paths", onAge: true,
  alt: () => `${traces.title} of ${lines} lines over ${ages.length} ages from ${show(ages[0])} to ${show(ages[ages.length - 1])}, with ${turning.length} turning points and ${jumps.length} jumps marked. The table beside it holds the values at the slider's age.`,
  option() {
    const order = ranked.slice(0, MAX_DRAWN_LINES);
    const narrow = byId("chart-paths").clientWidth < 560;
    const series = order.slice().reverse().map((j) => {
      const { color, dash, width } = look(j);
      const dim = isolated !== null && isolated !== j;
      const data = Array.from(ages, (age, k) => [toAxis(age), lineValue(k, j)]);
      return {
        id: `line ${j}`, name: traces.names[j], type: "line", data, showSymbol: false, triggerLineEvent: true, cursor: "pointer",
        lineStyle: { color, type: dash, width: isolated === j ? 3.5 : width, opacity: dim ? 0.1 : 1 }, itemStyle: { color },
        emphasis: { focus: "none", lineStyle: { width: width + 1.5 } }, z: dim ? 2 : 3,
        endLabel: {
          show: !narrow && !dim && (isolated === j || ranked.indexOf(j) < LINES), formatter: () => traces.names[j],
          color, width: 96, overflow: "truncate", fontSize: 11,
        },
        labelLayout: { moveOverlap: "shiftY" },
      };
    });
    const mark = (name, list, symbol, size, y) => ({
      name, type: "scatter", yAxisIndex: 1, silent: true, symbol, symbolSize: size, data: list.map((age) => [toAxis(age), y]),
      itemStyle: { color: color("soft") }, tooltip: { show: false },
    });
    if (series.length) series[series.length - 1].markLine = ageMarks();
    series.push(mark("turning point", thinned(turning), "rect", [1, 9], 0.012));
    series.push({ ...mark("jump", jumps.map((j) => j.age), "triangle", 10, 0.03), itemStyle: { color: color("c6") } });
    return {
      ...base(), grid: { ...GRID, right: narrow ? 18 : 118 }, xAxis: ageAxis(),
      yAxis: [valueAxis(units === "user" ? `${traces.title.toLowerCase()}, your units` : traces.title.toLowerCase()), { show: false, min: 0, max: 1 }],
      legend: legend(["turning point", "jump"]), tooltip: tooltip({ formatter: (list) => this.tip(list) }), series,
    };
  },
  tip(list) {
    const shown = list.filter((p) => String(p.seriesId).startsWith("line ")).sort((a, b) => Math.abs(b.value[1]) - Math.abs(a.value[1]));
    if (!shown.length) return "";
    const few = shown.slice(0, 12).map((p) => [p.seriesName, show(p.value[1], 5)]);
    if (shown.length > 12) few.push([`and ${shown.length - 12} more`, ""]);
    return tip(`age ${show(fromAxis(shown[0].value[0]), 5)}`, few);
  },
  start(chart) {
    // A line's own events name its place among the series, not its id.
    chart.on("click", (p) => {
      const { id } = chart.getOption().series[p.seriesIndex];
      if (id.startsWith("line ")) isolate(Number(id.slice(5)));
    });
  },
  move(k) {
    for (const row of byId("values").rows) row.cells[1].textContent = show(lineValue(k, Number(row.dataset.line)), 6);
    byId("pathscaption").textContent = `${traces.active[k]} of ${traces.coefficients} coefficients are not 0 at age ${show(ages[k], 5)}.`;
  },
};

const learning = report.learning && {
  ...report.learning, age: unpack(report.learning.age), score: unpack(report.learning.score), error: unpack(report.learning.standard_error),
  test: report.learning.test && unpack(report.learning.test),
};
const learningPanel = learning && {
  id: "chart-learning", onAge: true,
  alt: () => `${learning.metric} on ${learning.judge} against age; ${report.marks.map((m) => `${m.label} age ${show(m.age)}`).join(", ")}.`,
  option() {
    const line = (name, value, more) => ({
      name, type: "line", showSymbol: false, data: Array.from(learning.age, (age, k) => [toAxis(age), value(k)]), itemStyle: { color: color("c0") }, ...more,
    });
    // The band is the upper end stacked on an invisible lower one.
    const hidden = { lineStyle: { opacity: 0 }, stack: "band", stackStrategy: "all", silent: true };
    const series = [
      line("lower", (k) => learning.score[k] - learning.error[k], hidden),
      line("± one standard error", (k) => 2 * learning.error[k], { ...hidden, areaStyle: { color: color("c0"), opacity: 0.18 } }),
      line(learning.metric, (k) => learning.score[k], { lineStyle: { color: color("c0"), width: 2 }, markLine: ageMarks() }),
    ];
    if (learning.test) series.push({
      name: "test rows", type: "line", showSymbol: false, data: Array.from(ages, (age, k) => [toAxis(age), learning.test[k]]),
      lineStyle: { color: color("c2"), type: "dotted", width: 2 }, itemStyle: { color: color("c2") },
    });
    if (learning.ordinary !== null) series.push({
      name: "ordinary fit", type: "line", showSymbol: false, data: [ages[0], ages[ages.length - 1]].map((age) => [toAxis(age), learning.ordinary]),
      lineStyle: { color: color("c1"), type: "dashed", width: 2 }, itemStyle: { color: color("c1") },
    });
    return {
      ...base(), xAxis: ageAxis(), yAxis: valueAxis(learning.metric), legend: legend(series.slice(1).map((s) => s.name)), series,
      tooltip: tooltip({ formatter: (list) => this.tip(list) }),
    };
  },
  tip(list) {
    const on = list.find((p) => p.seriesName === learning.metric);
    if (!on) return "";
    const pairs = [[learning.metric, show(on.value[1], 5)], ["standard error", show(learning.error[on.dataIndex], 3)]];
    if (learning.ordinary !== null) pairs.push(["ordinary fit", show(learning.ordinary, 5)]);
    return tip(`age ${show(learning.age[on.dataIndex], 5)}`, pairs);
  },
  move(k) {
    const c = nearest(learning.age, ages[k]);
    byId("learningcaption").textContent = `${learning.metric} ${show(learning.score[c], 5)} ± ${show(learning.error[c], 3)} at age ${show(learning.age[c], 5)}, the candidate next to the slider.${learning.test ? ` Test rows: ${show(learning.test[k], 5)} at the slider's age.` : ""}`;
  },
};

const ZONE_WORDS = { E: "small losses", M: "medium losses", D: "large losses", N: "no loss", Z: "pinned at a kink" };
const zoneNames = states.zones.map((z) => (ZONE_WORDS[z] ? `${z}: ${ZONE_WORDS[z]}` : z));
const zoneCount = (k, z) => states.counts[k * states.zones.length + z];
const zonesPanel = {
  id: "chart-zones", onAge: true,
  alt: () => `How many training rows are in each zone against age: ${zoneNames.join("; ")}.`,
  option() {
    const colors = { E: "c0", M: "c4", D: "c1", N: "c7", Z: "c3" };
    const series = states.zones.map((zone, z) => ({
      name: zoneNames[z], type: "line", stack: "rows", showSymbol: false, data: Array.from(ages, (age, k) => [toAxis(age), zoneCount(k, z)]),
      lineStyle: { color: color(colors[zone] ?? "c5"), type: DASHES[z % DASHES.length], width: 1.5 }, itemStyle: { color: color(colors[zone] ?? "c5") }, areaStyle: { opacity: 0.35 },
    }));
    return {
      ...base(), xAxis: ageAxis(), yAxis: valueAxis("training rows", { min: 0 }), legend: legend(zoneNames), series,
      tooltip: tooltip({ formatter: (list) => (list.length ? tip(`age ${show(fromAxis(list[0].value[0]), 5)}`, list.map((p) => [p.seriesName, String(p.value[1])])) : "") }),
    };
  },
  move(k) {
    const counts = states.zones.map((zone, z) => `${zone} ${zoneCount(k, z)}`).join(" · ");
    byId("zonescaption").textContent = `${counts} · sum of weights ${show(states.trusted[k], 5)}`;
  },
};

const weightAt = (k, i) => states.weight[k * drawn + i] / 255;
const predictionAt = (k, i) => states.extent[0] + (states.prediction[k * drawn + i] / 65535) * (states.extent[1] - states.extent[0]);

function channels(name) {
  return color(name).match(/[0-9a-f]{2}/gi).map((h) => parseInt(h, 16));
}

function ramp() {
  const [low, high] = [channels("low"), channels("high")];
  return (w) => low.map((c, k) => Math.round(c + w * (high[k] - c)));
}

const weightsPanel = {
  id: "chart-weights", onAge: true,
  alt: () => `Weight of each training row against age, most suspicious rows at the top: strong colour is trusted, faint is left out.`,
  /// The cells as an image: one column per pixel, one line per drawn row.
  image(width) {
    const canvas = element("canvas");
    canvas.width = Math.max(1, Math.round(width));
    canvas.height = Math.max(1, drawn);
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(canvas.width, canvas.height);
    const [low, high] = [toAxis(ages[0]), toAxis(ages[ages.length - 1])];
    const paint = ramp();
    let k = 0;
    for (let x = 0; x < canvas.width; x++) {
      const at = low + ((x + 0.5) / canvas.width) * (high - low);
      while (k + 1 < ages.length && Math.abs(toAxis(ages[k + 1]) - at) <= Math.abs(toAxis(ages[k]) - at)) k++;
      for (let i = 0; i < drawn; i++) pixels.data.set([...paint(weightAt(k, i)), 255], 4 * (i * canvas.width + x));
    }
    context.putImageData(pixels, 0, 0);
    return canvas;
  },
  option(chart) {
    const width = chart.getWidth() - GRID.left - GRID.right, height = chart.getHeight() - 12 - GRID.bottom;
    return {
      ...base(), grid: { ...GRID, top: 12 }, xAxis: { ...ageAxis(), axisPointer: { show: false } }, series: [],
      yAxis: valueAxis("rank by suspicion", { inverse: true, min: 1, max: states.rank[drawn - 1] + 1 || 1, splitLine: { show: false }, axisLabel: { color: color("soft"), showMaxLabel: false } }),
      graphic: [{ type: "image", id: "cells", left: GRID.left, top: 12, style: { image: this.image(width), width, height } }],
    };
  },
  start(chart) {
    chart.getZr().on("mousemove", (e) => {
      if (!chart.containPixel("grid", [e.offsetX, e.offsetY])) return this.move(current);
      const share = (e.offsetY - 12) / (chart.getHeight() - 12 - GRID.bottom);
      const i = Math.min(drawn - 1, Math.max(0, Math.floor(share * drawn)));
      const k = nearest(ages, fromAxis(chart.convertFromPixel({ xAxisIndex: 0 }, e.offsetX)));
      byId("weightscaption").textContent = `row ${states.row[i]}, rank ${states.rank[i] + 1}: weight ${weightAt(k, i).toFixed(2)} at age ${show(ages[k])}`;
    });
  },
  move() {
    byId("weightscaption").textContent = "weight from 0 (faint: left out) to 1 (strong: trusted in full)";
  },
};

const classes = report.classes;
const residual = (k, i) => (classes ? states.target[i] * predictionAt(k, i) : states.target[i] - predictionAt(k, i));
const residualsPanel = {
  id: "chart-residuals", onAge: false,
  alt: () => `${byId("residualstitle").textContent} at age ${show(ages[current])}: filled marks are rows with some weight, hollow ones have none.`,
  /// The same axes at every age, so that points can be followed.
  extent: (() => {
    let low = Infinity, high = -Infinity;
    for (let k = 0; k < ages.length; k++) for (let i = 0; i < drawn; i++) { const r = residual(k, i); low = Math.min(low, r); high = Math.max(high, r); }
    return [low, high];
  })(),
  points(k) {
    const paint = ramp();
    const groups = (classes ? [...classes] : ["row"]).flatMap((name) => [{ name, hollow: false, data: [] }, { name: `${name}, weight 0`, hollow: true, data: [] }]);
    for (let i = 0; i < drawn; i++) {
      const w = weightAt(k, i);
      const group = groups[(classes && states.target[i] > 0 ? 2 : 0) + (w === 0 ? 1 : 0)];
      const x = classes ? states.rank[i] + 1 : predictionAt(k, i);
      group.data.push({ value: [x, residual(k, i), i], itemStyle: w === 0 ? undefined : { color: `rgb(${paint(w)})` } });
    }
    return groups.map(({ name, hollow, data }, g) => {
      const symbol = hollow ? (g < 2 ? "triangle" : "diamond") : g < 2 ? "circle" : "rect";
      const itemStyle = hollow
        ? { color: color("card"), borderColor: color("c1"), borderWidth: 1.4 }
        : { color: color("high"), borderColor: color("soft"), borderWidth: 0.6 };
      return { id: `group ${g}`, name, type: "scatter", symbol, symbolSize: hollow ? 8 : 7, data, itemStyle };
    });
  },
  option() {
    const series = this.points(current);
    const fixed = (low, high) => { const pad = 0.03 * (high - low || 1); return { min: low - pad, max: high + pad }; };
    const format = { axisLabel: { color: color("soft"), hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: (v) => show(v, 3) } };
    const x = classes
      ? valueAxis("rank by suspicion", { nameGap: 24, min: 1, max: states.rank[drawn - 1] + 1 || 1, ...format })
      : valueAxis("prediction", { nameGap: 24, ...fixed(...states.extent), ...format });
    return {
      ...base(), xAxis: { ...x, splitLine: { show: false } }, series,
      yAxis: valueAxis(classes ? "margin" : "target − prediction", { ...fixed(...this.extent), ...format }),
      legend: legend(series.map((s) => s.name)),
      tooltip: tooltip({ trigger: "item", formatter: (p) => this.tip(p.value[2]) }),
    };
  },
  tip(i) {
    const target = classes ? classes[states.target[i] > 0 ? 1 : 0] : show(states.target[i], 5);
    return tip(`row ${states.row[i]}`, [
      ["rank by suspicion", String(states.rank[i] + 1)], ["weight", weightAt(current, i).toFixed(2)], ["target", target],
      [classes ? "decision value" : "prediction", show(predictionAt(current, i), 4)],
    ]);
  },
  move(k, chart) {
    chart.setOption({ series: this.points(k) });
    let without = 0;
    for (let i = 0; i < drawn; i++) without += weightAt(k, i) === 0;
    byId("residualscaption").textContent = `At age ${show(ages[k], 5)}: ${without} of the ${drawn} rows drawn have weight 0 (hollow marks).`;
  },
};

const criticalPanel = {
  id: "chart-critical", onAge: true,
  alt: () => `Critical points by kind along the age axis: ${turning.length} turning points, ${jumps.length} jumps.`,
  option() {
    const histogram = report.critical[scale];
    const steps = (counts) => [...counts, counts[counts.length - 1]].map((n, b) => [toAxis(histogram.edges[b]), n]);
    const series = report.critical.kinds.map((name, k) => ({
      name, type: "line", step: "end", stack: "kinds", showSymbol: false, data: steps(histogram.counts[k]), areaStyle: { opacity: 0.4 },
      lineStyle: { color: color(["c0", "c2", "c6"][k]), type: DASHES[k], width: 1.2 }, itemStyle: { color: color(["c0", "c2", "c6"][k]) },
    }));
    series.push({
      name: "jump", type: "scatter", symbol: "triangle", symbolSize: 9, silent: true, itemStyle: { color: color("c6") },
      data: jumps.map((j) => [toAxis(j.age), 0]), tooltip: { show: false },
    });
    return {
      ...base(), xAxis: ageAxis(), yAxis: valueAxis("critical points", { min: 0, minInterval: 1 }), legend: legend(report.critical.kinds), series,
      tooltip: tooltip({ formatter: (list) => this.tip(list, histogram) }),
    };
  },
  tip(list, histogram) {
    const steps = list.filter((p) => p.seriesType === "line");
    if (!steps.length) return "";
    const b = Math.min(steps[0].dataIndex, histogram.edges.length - 2);
    return tip(`ages ${show(histogram.edges[b])} to ${show(histogram.edges[b + 1])}`, report.critical.kinds.map((name, k) => [name, String(histogram.counts[k][b])]));
  },
  move(k) {
    const below = turning.reduce((n, age) => n + (age <= ages[k]), 0);
    const jumped = jumps.reduce((n, j) => n + (j.age <= ages[k]), 0);
    byId("criticalcaption").textContent = `At or below age ${show(ages[k], 5)}: ${below} of ${turning.length} turning points, ${jumped} of ${jumps.length} jumps.`;
  },
};

const panels = [pathsPanel, learningPanel, zonesPanel, weightsPanel, residualsPanel, criticalPanel].filter(Boolean);
