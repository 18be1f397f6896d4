// The report in a browser: what a reader does with it, checked against the files beside it.
import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { agepath, folder, goTo, json, launch, open, shots, values } from "./browser.mjs";

let browser, demo;

before(async () => {
  browser = await launch();
  demo = join(agepath(["demo", "--quiet"]), "agepath-demo");
});
after(() => browser.close());

const ageShown = async (page) => Number(await page.textContent("#agevalue"));

/// A number as the page shows it, with six significant digits.
const six = (value) => Number(value.toPrecision(6));

test("the demonstration opens from disk, offline, without errors, and is small", async () => {
  const { page, problems, milliseconds } = await open(browser, join(demo, "report.html"));
  const summary = json(join(demo, "summary.json"));
  const cards = await page.textContent("#cards");
  assert.ok(cards.includes(String(summary.chosen.excluded)), cards);
  assert.equal(await ageShown(page), six(summary.chosen.age));
  assert.ok(statSync(join(demo, "report.html")).size < 1.5e6);
  assert.ok(milliseconds < 10000, `${milliseconds} ms`);
  await page.screenshot({ path: join(shots, "demo-1280.png"), fullPage: true });
  assert.deepEqual(problems, []);
});

test("numbers at the slider's age are those of path.json", async () => {
  const { page, problems } = await open(browser, join(demo, "report.html"));
  const path = json(join(demo, "path.json"));
  const names = path.problem.features;
  const compare = async (knot) => {
    await goTo(page, knot.age);
    assert.equal(await ageShown(page), six(knot.age));
    const shown = await values(page);
    names.forEach((name, j) => assert.equal(shown[name] ?? 0, six(knot.coef[j]), `${name} at age ${knot.age}`));
  };
  const single = path.knots.filter((k) => path.knots.filter((o) => o.age === k.age).length === 1);
  const stored = await page.evaluate(() => {
    const bytes = Uint8Array.from(atob(JSON.parse(document.getElementById("data").textContent).ages.b), (c) => c.charCodeAt(0));
    return [...new Float64Array(bytes.buffer)];
  });
  const both = single.filter((k) => stored.includes(k.age));
  assert.ok(both.length >= 3, `${both.length} knots are in the page`);
  for (const k of [0, Math.floor(both.length / 2), both.length - 1]) await compare(both[k]);
  assert.deepEqual(problems, []);
});

test("the slider moves one line through every panel, and their captions", async () => {
  const { page, problems } = await open(browser, join(demo, "report.html"));
  const cursors = () => page.$$eval(".cursor", (list) => list.map((c) => c.getBoundingClientRect().left));
  const captions = () => page.$$eval("#pathscaption, #learningcaption, #zonescaption, #residualscaption, #criticalcaption", (l) => l.map((c) => c.textContent));
  const [x, words] = [await cursors(), await captions()];
  assert.equal(x.length, 5);
  await page.locator("#age").fill("1900");
  await page.waitForTimeout(100);
  const [moved, now] = [await cursors(), await captions()];
  moved.forEach((left, k) => assert.ok(left > x[k] + 20, `line ${k} went from ${x[k]} to ${left}`));
  now.forEach((text, k) => assert.notEqual(text, words[k]));
  const zones = await page.textContent("#zonescaption");
  const counted = [...zones.matchAll(/[A-Z] (\d+)/g)].reduce((n, m) => n + Number(m[1]), 0);
  assert.equal(counted, json(join(demo, "summary.json")).rows);
  const wide = await page.textContent("#agevalue");
  await page.selectOption("#scale", "linear");
  assert.equal(await page.textContent("#agevalue"), wide);
  const linear = await cursors();
  assert.ok(linear.every((left, k) => left !== moved[k]));
  assert.deepEqual(problems, []);
});

test("a coefficient can be seen alone, by its line and by its name", async () => {
  const { page, problems } = await open(browser, join(demo, "report.html"));
  const opacities = () => page.evaluate(() => {
    const series = echarts.getInstanceByDom(document.getElementById("chart-paths")).getOption().series;
    return Object.fromEntries(series.filter((s) => s.type === "line").map((s) => [s.name, s.lineStyle.opacity]));
  });
  await page.getByRole("button", { name: "bmi", exact: true }).click();
  const alone = Object.entries(await opacities());
  assert.deepEqual(alone.filter(([, o]) => o === 1).map(([name]) => name), ["bmi"]);
  assert.equal(await page.getByRole("button", { name: "bmi", exact: true }).getAttribute("aria-pressed"), "true");
  await page.click("#showall");
  assert.ok(Object.values(await opacities()).every((o) => o === 1));
  // The same by a click on the line, at that of its points which is farthest from the other lines' points.
  const place = await page.evaluate(() => {
    const chart = echarts.getInstanceByDom(document.getElementById("chart-paths"));
    const lines = chart.getOption().series.filter((s) => s.type === "line" && s.data.length > 2);
    const pixels = (s) => s.data.slice(1, -1).map((point) => chart.convertToPixel({ seriesId: s.id }, point));
    const others = lines.filter((s) => s.name !== "s5").flatMap(pixels);
    const room = ([x, y]) => Math.min(...others.map(([u, v]) => Math.hypot(x - u, y - v)));
    return pixels(lines.find((s) => s.name === "s5")).map((p) => [room(p), p]).reduce((a, b) => (b[0] > a[0] ? b : a))[1];
  });
  const box = await page.locator("#chart-paths").boundingBox();
  await page.mouse.click(box.x + place[0], box.y + place[1]);
  assert.equal(await page.getByRole("button", { name: "s5", exact: true }).getAttribute("aria-pressed"), "true");
  assert.deepEqual(problems, []);
});

test("suspects can be sorted, searched and exported whole", async () => {
  const { page, problems } = await open(browser, join(demo, "report.html"));
  const exported = async () => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#suspectstable").getByRole("button", { name: "Export CSV" }).click()]);
    return readFileSync(await download.path(), "utf8");
  };
  const original = readFileSync(join(demo, "suspects.csv"), "utf8");
  assert.equal(await exported(), original);
  await page.locator("#suspectstable").getByRole("button", { name: "row", exact: true }).click();
  const lines = original.trimEnd().split("\n").slice(1);
  const sorted = lines.toSorted((a, b) => parseInt(a) - parseInt(b));
  assert.deepEqual((await exported()).trimEnd().split("\n").slice(1), sorted);
  const first = await page.textContent("#suspectstable tbody tr td");
  assert.equal(first, sorted[0].split(",")[0]);
  await page.locator("#suspectstable input[type=search]").fill("12");
  const found = lines.filter((l) => l.split(",").some((f) => f.includes("12")));
  assert.ok(found.length > 0 && found.length < lines.length);
  assert.equal((await exported()).trimEnd().split("\n").length, 1 + found.length);
  assert.deepEqual(problems, []);
});

test("keyboard: the slider, the table and the way to them", async () => {
  const { page, problems } = await open(browser, join(demo, "report.html"));
  const note = async () => Number((await page.textContent("#agenote")).match(/solution (\d+)/)[1]);
  await page.focus("#age");
  const from = await note();
  await page.keyboard.press("ArrowRight");
  assert.equal(await note(), from + 1);
  await page.keyboard.press("PageDown");
  assert.equal(await note(), from - 9);
  await page.keyboard.press("Home");
  assert.equal(await note(), 1);
  await page.keyboard.press("End");
  const path = json(join(demo, "path.json"));
  assert.equal(await ageShown(page), six(path.ages[1]));
  assert.ok((await page.getAttribute("#age", "aria-valuetext")).startsWith(`age ${six(path.ages[1])}`));
  const header = page.locator("#suspectstable").getByRole("button", { name: "score", exact: true });
  await header.focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#suspectstable th").nth(1).getAttribute("aria-sort"), "ascending");
  await page.locator("#suspectstable").getByRole("button", { name: "Next page" }).focus();
  await page.keyboard.press("Space");
  assert.match(await page.textContent("#suspectstable [role=status]"), /^16 to 30/);
  assert.deepEqual(problems, []);
});

/// Every piece of text with its contrast to what lies behind it, by the WCAG formula.
const contrasts = () => {
  const parse = (text) => text.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const out = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.matches(":disabled, script, .skip")) continue;
    const [a, b] = [luminance(parse(getComputedStyle(e).color)), luminance(behind(e))].sort((x, y) => y - x);
    out.push([(a + 0.05) / (b + 0.05), e.tagName, e.textContent.slice(0, 40)]);
  }
  return out;
};

test("text has contrast and plots have words, light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, problems } = await open(browser, join(demo, "report.html"), { colorScheme });
    const found = await page.evaluate(contrasts);
    assert.ok(found.length > 100);
    assert.deepEqual(found.filter(([ratio]) => ratio < 4.5), [], colorScheme);
    const charts = await page.$$eval(".chart", (list) => list.map((c) => [c.id, c.getAttribute("role"), c.getAttribute("aria-label") ?? ""]));
    assert.equal(charts.length, 6);
    for (const [id, role, label] of charts) assert.ok(role === "img" && label.length > 40, id);
    await page.screenshot({ path: join(shots, `demo-1280-${colorScheme}.png`), fullPage: true });
    assert.deepEqual(problems, []);
  }
});

test("a narrow screen shows all of it without scrolling sideways", async () => {
  const { page, problems } = await open(browser, join(demo, "report.html"), { viewport: { width: 390, height: 844 } });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.screenshot({ path: join(shots, "demo-390.png"), fullPage: true });
  assert.deepEqual(problems, []);
});

test("it prints, in light colours", async () => {
  const { page, problems } = await open(browser, join(demo, "report.html"), { colorScheme: "dark" });
  const pdf = await page.pdf({ path: join(shots, "demo.pdf"), format: "A4", printBackground: true });
  assert.ok(pdf.length > 50000);
  assert.deepEqual(problems, []);
});

test("hostile names, labels and file names are only text", async () => {
  const dir = folder();
  const names = ['</script><script>alert("name")</script>', `<img src=x onerror=alert('img')>`, '"quoted, name"', "${alert(1)}{{data}}{b}", "long ".repeat(80)];
  const labels = ["<b>yes</b>", "</td><script>alert(2)</script>"];
  const cell = (text) => `"${text.replaceAll('"', '""')}"`;
  const rows = Array.from({ length: 120 }, (_, i) => {
    const x = names.map((_, j) => Math.sin(i * (j + 1.7)) * 3);
    return [...x, cell(labels[x[0] + x[1] + Math.cos(7 * i) > 0 ? 1 : 0])].join(",");
  });
  const file = `<script>alert(3)<!--'"&.csv`.replaceAll("/", "");
  writeFileSync(join(dir, file), `${[...names, "<i>target</i>"].map(cell).join(",")}\n${rows.join("\n")}\n`);
  agepath(["path", file, "-o", "out", "--quiet"], dir);
  const { page, problems } = await open(browser, join(dir, "out/report.html"));
  await page.locator("#age").fill("500");
  const bmi = page.locator("#values button").first();
  await bmi.click();
  await page.hover("#chart-paths");
  await page.waitForTimeout(200);
  const shown = Object.keys(await values(page));
  for (const name of names) assert.ok(shown.some((s) => s.trim() === name.trim()), name);
  assert.equal(await page.locator("img, b, main script, header script").count(), 0);
  assert.ok((await page.title()).includes(file), await page.title());
  assert.ok((await page.textContent("#suspectstable")).includes(labels[0]));
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.screenshot({ path: join(shots, "hostile-1280.png"), fullPage: true });
  assert.deepEqual(problems, []);
});

test("without an age chosen, with every pacing and with a kernel the page still works", async () => {
  const runs = [
    ["path", "builtin:diabetes", "--validation", "0", "--pacing", "mixture"],
    ["path", "builtin:breast_cancer", "--pacing", "hard", "--noise", "outliers:0.1"],
    ["path", "builtin:breast_cancer", "--model", "svm", "--noise", "outliers:0.1"],
    ["path", "builtin:diabetes", "--pacing", "log", "--max-events", "3", "--test", "builtin:diabetes"],
  ];
  for (const [k, run] of runs.entries()) {
    const dir = agepath([...run, "-o", "out", "--quiet"]);
    const { page, problems } = await open(browser, join(dir, "out/report.html"));
    await page.locator("#age").fill("1500");
    await page.waitForTimeout(100);
    await page.screenshot({ path: join(shots, `run-${k}.png`), fullPage: true });
    assert.deepEqual(problems, [], run.join(" "));
  }
});

test("twenty thousand rows open and react", async () => {
  const dir = folder();
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const normal = () => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
  const rows = Array.from({ length: 20640 }, () => {
    const x = Array.from({ length: 8 }, normal);
    const wrong = random() < 0.3 ? 12 * normal() : 0;
    return [...x.map((v) => v.toFixed(4)), (x[0] - 2 * x[1] + 0.5 * x[2] + normal() + wrong).toFixed(4)].join(",");
  });
  writeFileSync(join(dir, "large.csv"), `a,b,c,d,e,f,g,h,y\n${rows.join("\n")}\n`);
  agepath(["path", "large.csv", "-o", "out", "--quiet"], dir);
  const file = join(dir, "out/report.html");
  const events = json(join(dir, "out/path.json")).events.length;
  const { page, problems, milliseconds } = await open(browser, file);
  const reaction = await page.evaluate(async () => {
    const slider = document.getElementById("age");
    const begin = performance.now();
    for (let k = 0; k < 20; k++) {
      slider.value = 100 * k;
      slider.dispatchEvent(new Event("input"));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    }
    return (performance.now() - begin) / 20;
  });
  console.log(`# 20640 rows, ${events} events: ${(statSync(file).size / 1e6).toFixed(2)} MB, interactive after ${milliseconds} ms, ${reaction.toFixed(0)} ms per slider move`);
  assert.ok(milliseconds < 15000 && reaction < 1000, `${milliseconds} ms, ${reaction} ms`);
  assert.match(await page.textContent("#suspectstable [role=status]"), /of 20640$/);
  await page.screenshot({ path: join(shots, "large-1280.png"), fullPage: true });
  assert.deepEqual(problems, []);
});

test("several classes have one page with a line and a link for each", async () => {
  const dir = folder();
  const names = ["<b>red</b>", "green", "blue"];
  const rows = Array.from({ length: 90 }, (_, i) => {
    const k = i % 3;
    return `${[0, 4, 2][k] + ((i * 7) % 23) / 9},${[0, 1, 5][k] + ((i * 5) % 19) / 8},${names[i % 13 === 4 ? (k + 1) % 3 : k]}`;
  });
  writeFileSync(join(dir, "train.csv"), `x,y,colour\n${rows.join("\n")}\n`);
  agepath(["path", "train.csv", "-o", "out", "--quiet"], dir);
  const { page, problems } = await open(browser, join(dir, "out/report.html"));
  const summary = json(join(dir, "out/summary.json"));
  assert.deepEqual(await page.$$eval("#classrows th", (list) => list.map((c) => c.textContent)), summary.classes.map((c) => c.class));
  assert.ok((await page.textContent("#cards")).includes(String(Number(summary.accuracy.score.toPrecision(4)))));
  assert.equal(await page.$$eval("#suspectstable tbody tr", (list) => list.length), 15);
  assert.match(await page.textContent("#suspectstable [role=status]"), new RegExp(`of ${summary.rows}`));
  await page.screenshot({ path: join(shots, "classes-1280.png"), fullPage: true });
  await page.click("#classrows a");
  await page.waitForSelector("html[data-ready=yes]");
  assert.equal(await ageShown(page), six(summary.classes[0].age));
  assert.deepEqual(problems, []);
});
