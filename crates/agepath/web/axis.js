// The age axis, which all panels share, and the theme.
const LINES = 8; // lines that get a colour of their own
const DASHES = ["solid", "dashed", "dotted"];
const FORMATTED_TICKS = 7;
const ages = unpack(report.ages);

let scale = "log";
const toAxis = (age) => (scale === "log" ? Math.log10(age) : age);
const fromAxis = (x) => (scale === "log" ? 10 ** x : x);

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/// Ages worth a tick: 1, 2, 5 times powers of ten, or only powers where there are many decades.
function ticks() {
  const [low, high] = [ages[0], ages[ages.length - 1]];
  if (scale === "linear") return undefined;
  const decades = Math.log10(high / low);
  const steps = decades > 3.5 ? [1] : decades > 0.8 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const out = [];
  for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++)
    for (const s of steps) if (s * 10 ** k >= low * 0.999 && s * 10 ** k <= high * 1.001) out.push(Math.log10(s * 10 ** k));
  return out.length > 1 ? out : [Math.log10(low), Math.log10(high)];
}

function ageAxis() {
  const values = ticks();
  const custom = values && { customValues: values };
  return {
    type: "value", min: toAxis(ages[0]), max: toAxis(ages[ages.length - 1]),
    name: "age", nameLocation: "middle", nameGap: 24, nameTextStyle: { color: color("soft") }, splitNumber: FORMATTED_TICKS,
    axisLabel: { color: color("soft"), hideOverlap: true, formatter: (x) => show(fromAxis(x), 3), ...custom },
    axisTick: { show: true, ...custom }, axisLine: { lineStyle: { color: color("soft") }, onZero: false }, splitLine: { show: false },
    axisPointer: { show: true, label: { show: false }, lineStyle: { color: color("soft"), type: "dashed" } },
  };
}

function valueAxis(name, more = {}) {
  return {
    type: "value", name, nameLocation: "middle", nameGap: 48, scale: true, nameTextStyle: { color: color("soft") },
    axisLabel: { color: color("soft"), formatter: (v) => show(v, 4) }, axisLine: { show: true, lineStyle: { color: color("soft") }, onZero: false },
    splitLine: { lineStyle: { color: color("grid") } }, ...more,
  };
}

function tooltip(more = {}) {
  return {
    trigger: "axis", confine: true, backgroundColor: color("card"), borderColor: color("line"), padding: 8,
    textStyle: { color: color("ink"), fontSize: 12 }, ...more,
  };
}

/// A tooltip's content: a title and pairs of name and value.
function tip(title, pairs) {
  const out = element("div", undefined, { class: "tip" });
  out.append(element("strong", title));
  for (const [name, value] of pairs) {
    const row = element("div");
    row.append(element("span", name), element("span", value));
    out.append(row);
  }
  return out;
}

const GRID = { left: 66, right: 18, top: 44, bottom: 42 };

function base() {
  return { animation: false, aria: { enabled: false }, textStyle: { fontFamily: "inherit" }, grid: { ...GRID } };
}

function legend(data, more = {}) {
  return { type: "scroll", top: 0, left: "center", itemWidth: 20, itemHeight: 10, textStyle: { color: color("ink") }, pageTextStyle: { color: color("ink") }, pageIconColor: color("accent"), data, ...more };
}
