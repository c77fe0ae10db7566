// Draws what a report holds as JSON: curves in figures, and what the page of a run showed last.

for (const figure of document.querySelectorAll("figure.chart")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  new Chart(figure, figure.querySelector("figcaption").textContent, data);
}

// Each figure of every member, a table a role.
function figures(body, f) {
  for (const role of ["worker", "server", "scheduler"]) {
    const members = f.members.concat(f.scheduler ? [f.scheduler] : []).filter((m) => (m.role || "scheduler") === role);
    const names = [...new Set(members.flatMap((m) => Object.keys(m.figures)))];
    if (names.length === 0) continue;
    const cell = (value) => value === null || typeof value !== "object" ? compact(value) :
      Object.entries(value).map(([k, v]) => k + " " + (cell(v) || "-")).join(", ");
    const more = node("details");
    more.append(node("summary", "All figures: " + role),
      box(table(["figure", ...members.map((m) => m.name || role)], names.map((n) => [n, ...members.map((m) => cell(m.figures[n]))]))));
    body.append(more);
  }
}

for (const section of document.querySelectorAll("section.figures")) {
  const page = JSON.parse(section.querySelector("script").textContent);
  for (const [key, title, draw] of [...PANELS, ["figures", "Figures", figures]]) {
    if (page[key]) draw(panel(section, key, title), page[key]);
  }
}
