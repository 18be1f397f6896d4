// Reads what the library stored in this page.
const report = JSON.parse(document.getElementById("data").textContent);

const TYPES = { f64: Float64Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array };

function unpack({ t, b }) {
  const text = atob(b);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new TYPES[t](bytes.buffer);
}

const byId = (id) => document.getElementById(id);

/// `digits` significant digits, without trailing zeros.
function show(value, digits = 4) {
  if (Number.isFinite(value)) return String(Number(value.toPrecision(digits)));
  return Number.isNaN(value) ? "" : value > 0 ? "∞" : "−∞";
}

/// An element with text; text is never read as markup.
function element(tag, text, attributes = {}) {
  const out = document.createElement(tag);
  if (text !== undefined) out.textContent = text;
  for (const [name, value] of Object.entries(attributes)) out.setAttribute(name, value);
  return out;
}

/// Records of a CSV text: the text of each as it stands there, and its fields.
function parseCsv(text) {
  const records = [];
  let start = 0, fields = [], field = "", quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') { field += '"'; i++; }
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ",") { fields.push(field); field = ""; }
    else if (c === "\n") {
      fields.push(field);
      records.push({ text: text.slice(start, i + 1), fields });
      start = i + 1; fields = []; field = "";
    } else if (c !== "\r") field += c;
  }
  return records;
}

/// Hands a file to the reader.
function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", "", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
