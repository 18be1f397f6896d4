// Fills the page of several classes.
document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
document.title = byId("title").textContent = report.title;
fillCards();
byId("classrows").replaceChildren(...report.classes.map(({ name, link, cells }) => {
  const row = element("tr"), head = element("th", undefined, { scope: "row" });
  head.append(element("a", name, { href: link }));
  row.append(head, ...cells.map((text) => element("td", text, { class: "num" })));
  return row;
}));
byId("classhead").append(...report.columns.map((name) => element("th", name, { scope: "col", class: "num" })));
fillSuspects("each as the path sees it that doubts it most");
byId("commandbox").hidden = report.command === null;
byId("command").textContent = report.command ?? "";
byId("notices").replaceChildren(...report.notices.map((text) => element("p", text, { class: "hint" })));
document.documentElement.dataset.ready = "yes";
