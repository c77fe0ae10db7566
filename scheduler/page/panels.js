// Makes each panel of the page from its JSON. All text becomes text nodes, never markup.

function bytes(n) {
  if (n === null || n === undefined) return "";
  let unit = 0;
  for (; n >= 1024 && unit < 4; ++unit) n /= 1024;
  return (unit ? n.toPrecision(3) : n) + [" B", " KiB", " MiB", " GiB", " TiB"][unit];
}

function seconds(s) {
  if (s === null || s === undefined || !isFinite(s)) return "";
  if (s < 1e-3) return compact(Number((s * 1e6).toPrecision(3))) + " µs";
  if (s < 1) return compact(Number((s * 1e3).toPrecision(3))) + " ms";
  if (s < 120) return Number(s.toPrecision(3)) + " s";
  return s < 7200 ? Math.round(s / 60) + " min" : (s / 3600).toFixed(1) + " h";
}

function share(part) { return part === null || part === undefined ? "" : (100 * part).toFixed(1) + "%"; }
function whole(n) { return n === null || n === undefined ? "" : Number(n).toLocaleString("en-US"); }
function when(unix) { return unix ? new Date(unix * 1000).toLocaleString("sv") : ""; }

function box(...parts) {
  const made = node("div", null, "box wide");
  made.tabIndex = 0;
  made.append(...parts);
  return made;
}

// A table; a head that begins with "#" is one of numbers.
function table(heads, rows) {
  const made = node("table"), top = made.createTHead().insertRow(), body = made.createTBody();
  for (const head of heads) top.append(node("th", head.replace("#", ""), head[0] === "#" ? "number" : ""));
  for (const cells of rows) {
    const row = body.insertRow();
    cells.forEach((cell, i) => {
      const made = node("td", null, heads[i][0] === "#" ? "number" : "");
      made.append(cell === null || cell === undefined ? "" : cell);
      row.append(made);
    });
  }
  return made;
}

function tiles(pairs) {
  const made = node("div", null, "tiles");
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    const tile = node("div", null, "tile");
    tile.append(node("b", value), node("span", name));
    made.append(tile);
  }
  return made;
}

function bar(parts, label) {
  const made = node("div", null, "bar");
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", label);
  made.title = label;
  for (const [kind, size] of parts) {
    const part = node("div", null, kind);
    part.style.flexGrow = size * 1e6;  // A sum below 1 would leave a gap.
    made.append(part);
  }
  return made;
}

function none(text) { return node("p", text, "dim"); }

function eventText(event) { return event.text + (event.cause ? ": " + event.cause : ""); }

function health(body, h) {
  const of = (role) => h.members[role] && h.members[role].alive + " of " + h.members[role].expected;
  const ok = ["servers", "workers"].every((r) => !h.members[r] || h.members[r].alive >= h.members[r].expected);
  const sentence = node("p", h.sentence || "", "sentence" + (ok ? "" : " bad"));
  sentence.setAttribute("role", "status");
  body.append(sentence);
  if (h.advice) body.append(node("p", h.advice));
  if (h.missing) body.append(node("p", h.missing, "warn"));
  body.append(tiles([["servers alive", of("servers")], ["workers alive", of("workers")], ["state", h.state]]));
  if (h.last_event) body.append(node("p", "Last event, " + when(h.last_event.time) + ": " + eventText(h.last_event), "dim"));
  if (h.out) body.append(node("p", "Results are in " + h.out, "dim"));
}

// The pictures stay, and get what is new.
function training(body, t) {
  const charts = body.charts || (body.charts = new Map());
  const head = tiles([["step", t.max_steps ? whole(t.step) + " of " + whole(t.max_steps) : whole(t.step)],
    ["epoch", t.epochs ? t.epoch + " of " + t.epochs : t.epoch], ["of this epoch", share(t.epoch_progress)],
    ["examples per second", t.examples_per_second && whole(Math.round(t.examples_per_second))],
    ["examples", compact(t.examples)], ["loss of training", compact(t.loss)], ["learning rate", compact(t.learning_rate)],
    ...t.evaluations.map((e) => [e.metric + (e.set ? " of " + e.set : "") + ", step " + e.step, compact(e.value)])]);
  if (!body.head) body.append(body.head = node("div"), body.pictures = node("div", null, "charts"));
  body.head.replaceChildren(head);
  const named = new Map();
  for (const curve of t.curves) {
    if (curve.points.length === 0) continue;
    const loss = curve.name === "train_loss" || curve.name === "logloss";
    const title = loss ? "loss" : curve.name.replaceAll("_", " ");
    if (!named.has(title)) named.set(title, []);
    const label = curve.name === "train_loss" ? "training" : curve.set ? curve.set : loss ? "evaluation" : title;
    named.get(title).push({ label, points: curve.points, dots: curve.points.length <= 60 && curve.name !== "train_loss" });
  }
  for (const [title, series] of named) {
    series.forEach((one, i) => one.color = i % COLORS);
    if (charts.has(title)) {
      charts.get(title).update({ series });
    } else {
      const figure = node("figure");
      figure.append(node("figcaption", title));
      body.pictures.append(figure);
      charts.set(title, new Chart(figure, title, { series }));
    }
  }
}

// Stages of a step, and what is left of it.
const STAGES = [["compute", "compute"], ["read_wait", "wait for reader"], ["pull_wait", "pull"], ["push_wait", "push"],
  ["reduce_dense", "reduce dense"], ["keep", "kept rows"], ["other", "other"]];

function time(body, t) {
  if (t.workers.length === 0) return body.append(none("No worker has trained yet."));
  const legend = node("p", null, "legend"), bars = node("div", null, "bars says");
  STAGES.forEach(([, name], i) => {
    const part = node("span");
    part.append(node("i", null, "c" + i), name);
    legend.append(part);
  });
  for (const w of t.workers) {
    const of = Object.fromEntries(t.stages.map((stage, i) => [stage, w.seconds[i] || 0]));
    const label = STAGES.map(([stage, name]) => name + " " + seconds(of[stage] || 0)).join(", ");
    const waits = w.waits_for.length ? ", waits for " + w.waits_for.join(", ") : "";
    const lasts = w.for_seconds >= 1 ? ", for " + seconds(w.for_seconds) : "";
    bars.append(node("span", w.name), bar(STAGES.map(([stage], i) => ["c" + i, of[stage] || 0]), w.name + ": " + label),
      node("span", (w.doing ? "at " + w.doing : "") + waits + lasts, "does" + (w.for_seconds >= 1 ? " bad" : " dim")));
  }
  body.append(legend, box(bars));
}

function headed(body, title, part) {
  body.append(node("h3", title), box(part));
}

function stragglers(body, s) {
  const rows = (all) => [...all].sort((a, b) => (b.ratio || 0) - (a.ratio || 0)).map((m) => [m.name,
    m.straggler ? node("span", "straggler for " + m.steps_over + " steps", "bad") : "", seconds(m.p50), seconds(m.p90),
    seconds(m.p99), whole(m.count), compact(m.ratio && Number(m.ratio.toPrecision(3)))]);
  const heads = ["", "#half within", "#90% within", "#99% within", "#times", "#of the median"];
  if (s.workers.length) headed(body, "Time of a step", table(["worker", ...heads], rows(s.workers)));
  if (s.servers.length) headed(body, "Time of a pull", table(["server", ...heads], rows(s.servers)));
  if (!body.firstChild) body.append(none("No step has been timed yet."));
}

function rows(body, r) {
  body.append(box(table(["table", "#rows in memory", "#on disk", "#bytes in memory", "#on disk", "#new rows", "#removed",
    "#read back", "#keys pulled"], r.tables.map((t) => [t.table, whole(t.rows.memory), whole(t.rows.disk),
    bytes(t.bytes.memory), bytes(t.bytes.disk), whole(t.admitted), whole(t.evicted), whole(t.fetched),
    whole(t.keys_pulled)]))));
  if (r.kept_hit_rate !== null) body.append(node("p", "Workers found " + share(r.kept_hit_rate) + " of the keys in rows that they keep.", "dim"));
  if (r.servers.length) {
    headed(body, "Servers", table(["server", "#memory of the process", "#limit", "#rows", "#bytes of rows"],
      r.servers.map((s) => [s.name, bytes(s.resident_bytes), s.limit_bytes ? bytes(s.limit_bytes) : "none", whole(s.rows),
        bytes(s.bytes)])));
  }
  if ((r.hot_shards || []).length) {
    headed(body, "Hottest shards; busiest server " + r.busiest_over_mean.toFixed(2) + " times the mean",
      table(["#shard", "at", "#of its time", "#rows/s", "#size"], r.hot_shards.map((s) => [s.shard, s.server,
        share(s.busy), compact(s.rows_per_second), bytes(s.bytes)])));
  }
  clocks(body, "Steps by which workers were ahead at a pull", r.staleness.bounds, r.staleness.counts);
  const pushes = r.push_staleness || { tables: [] };
  pushes.tables.forEach((t) => clocks(body, "Age of rows of " + t.table + " at a push, in clocks, " +
    t.mean.toFixed(2) + " on average", pushes.bounds, t.counts));
  if (r.pushes_repeated) body.append(node("p", whole(r.pushes_repeated) + " repeated pushes changed nothing.", "dim"));
  if (r.pushes_too_old) body.append(node("p", whole(r.pushes_too_old) + " pushes with too old rows left out: " +
    whole(r.examples_dropped) + " examples of " + whole(r.steps_dropped) + " steps dropped.", "bad"));
}

// Shows how often a number of clocks was seen.
function clocks(body, title, bounds, counts) {
  const all = counts.reduce((a, b) => a + b, 0);
  if (!all) return;
  const bars = node("div", null, "bars");
  counts.forEach((count, i) => {
    const low = i === 0 ? 0 : bounds[i - 1] + 1, high = bounds[i];
    const name = high === undefined ? "more than " + bounds[i - 1] : low === high ? String(low) : low + " to " + high;
    bars.append(node("span", name), bar([["c0", count], ["", all - count]], name + ": " + share(count / all)),
      node("span", share(count / all)));
  });
  headed(body, title, bars);
}

function checkpoints(body, c) {
  if (c.newest.length === 0) return body.append(none("No checkpoint yet."));
  body.append(box(table(["#step", "when", "#size", "#took", "kind", "verified", "folder"], c.newest.map((one) => [
    whole(one.step), when(one.time), bytes(one.bytes), seconds(one.seconds), one.kind, one.verified ? "yes" : "no",
    node("code", one.path)]))));
  if (c.resume) body.append(node("h3", "The command that goes on from the newest"), node("pre", c.resume));
}

function events(body, e) {
  if (e.events.length === 0) return body.append(none("Nothing has happened."));
  body.append(box(table(["when", "#step", "", "what", "#lasted"], [...e.events].reverse().map((one) => [when(one.time),
    whole(one.step), node("span", one.kind, one.kind === "warning" ? "bad" : "dim"), eventText(one), seconds(one.seconds)]))));
}

function configuration(body, c) {
  const shown = (some) => box(table(["setting", "value", "from"], some.map((s) => [s.path, node("code", s.value), s.from])));
  const given = c.settings.filter((s) => s.from !== "default"), rest = c.settings.filter((s) => s.from === "default");
  const more = node("details");
  more.append(node("summary", whole(rest.length) + " defaults"), shown(rest));
  body.append(given.length ? shown(given) : none("Every setting has its default."), more);
}

function about(body, a) {
  body.append(node("p", "hdps " + a.version + (a.python ? ", Python " + a.python : "")));
  if (a.arithmetic.length) body.append(box(table(["member", "arithmetic"], a.arithmetic.map((m) => [m.member, m.text]))));
  const links = node("p");
  for (const link of a.links) {
    const made = node("a", link.text);
    if (/^\/\w/.test(link.path)) made.href = link.path;
    links.append(made, "  ");
  }
  body.append(links);
}

// The panels in their order: key of the JSON, title, what draws.
const PANELS = [["health", "Health", health], ["training", "Training", training], ["time", "Where time goes", time],
  ["stragglers", "Stragglers", stragglers], ["rows", "Rows", rows], ["checkpoints", "Checkpoints", checkpoints],
  ["events", "Events and warnings", events], ["configuration", "Configuration", configuration], ["about", "About", about]];

function panel(to, key, title) {
  const section = node("section"), body = node("div");
  if (!document.getElementById(key)) section.id = key;  // A report may have two runs.
  section.append(node("h2", title), body);
  to.append(section);
  return body;
}
