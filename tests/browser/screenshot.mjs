// Makes the picture of the report in the README: `make screenshot`.
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { agepath, launch, open } from "./browser.mjs";

const out = resolve(dirname(fileURLToPath(import.meta.url)), "../../docs/report.png");
const browser = await launch();
const dir = agepath(["demo", "--quiet"]);
const { page, problems } = await open(browser, join(dir, "agepath-demo/report.html"), { viewport: { width: 1120, height: 1180 } });
await page.screenshot({ path: out });
await browser.close();
if (problems.length) throw new Error(problems.join("\n"));
console.log(out);
