// Runs the command and opens its report in the system's Chromium, with the network off.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const command = process.env.AGEPATH ?? join(root, "target/release/agepath");
export const shots = join(root, "target/screenshots");
mkdirSync(shots, { recursive: true });

/// A new directory that is gone when the process ends.
export function folder() {
  const dir = mkdtempSync(join(tmpdir(), "agepath-browser-"));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/// Runs `agepath` in a new directory and returns that directory.
export function agepath(args, dir = folder()) {
  execFileSync(command, args, { cwd: dir, stdio: ["ignore", "pipe", "inherit"] });
  return dir;
}

export const json = (file) => JSON.parse(readFileSync(file, "utf8"));

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

function executable() {
  const found = (process.env.PATH ?? "").split(":").flatMap((dir) => NAMES.map((name) => join(dir, name))).find(existsSync);
  if (!found) throw new Error(`none of ${NAMES.join(", ")} is installed`);
  return found;
}

/// A browser for a whole file of tests; containers have no sandbox for it.
export const launch = () => chromium.launch({ executablePath: executable(), args: ["--no-sandbox"] });

/// Opens a report from disk. `problems` collects whatever must not happen: errors, dialogs, requests.
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  await context.setOffline(true);
  const page = await context.newPage();
  const problems = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) problems.push(`console: ${m.text()}`); });
  page.on("pageerror", (e) => problems.push(`error: ${e.stack ?? e}`));
  page.on("dialog", (d) => { problems.push(`dialog: ${d.message()}`); d.dismiss(); });
  page.on("request", (r) => { if (!/^(file|blob|data):/.test(r.url())) problems.push(`request: ${r.url()}`); });
  const begin = Date.now();
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector("html[data-ready=yes]", { timeout: 20000 });
  return { page, problems, milliseconds: Date.now() - begin };
}

/// Moves the slider to the stored age next to `age`, the way a reader who types it does.
export async function goTo(page, age) {
  await page.fill("#typed", String(age));
  await page.press("#typed", "Enter");
  await page.locator("#typed").blur();
}

/// The values shown beside the coefficient paths.
export async function values(page) {
  return Object.fromEntries(await page.$$eval("#values tr", (rows) =>
    rows.map((r) => [r.querySelector("button").textContent, Number(r.cells[1].textContent)])));
}
