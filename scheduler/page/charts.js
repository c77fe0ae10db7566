// Draws curves over steps with dygraphs. All pictures share one cursor and one range of steps.
"use strict";

// Values of the library's legend are styled in a way that the page's policy forbids; ours are below each picture.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

const charts = [];
const COLORS = 6;

function node(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// Returns a number with at most six digits: 12.3k, 4.5M, 0.0123.
function compact(value) {
  if (value === null || value === undefined || !isFinite(value)) return "";
  const size = Math.abs(value);
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= unit) return Number((value / (unit === 1e4 ? 1e3 : unit)).toPrecision(4)) + letter;
  }
  return String(Number(value.toPrecision(6)));
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

// Returns the largest value to show: the first steps of a training may be far above all others.
function shownMax(series) {
  const values = series.flatMap((one) => one.points.map((point) => point[1])).filter((v) => v !== null);
  if (values.length < 40) return null;
  values.sort((a, b) => a - b);
  const low = values[0], high = values[values.length - 1], most = values[Math.floor(values.length * 0.97)];
  return most > low && high - low > 4 * (most - low) ? most + (most - low) / 2 : null;
}

// A picture of series [{label, points: [[step, value], ...], color, dashed, dots}] in a figure, with marks
// [{label, step, color}] as vertical lines.
class Chart {
  constructor(figure, title, data) {
    this.plot = node("div", null, "plot");
    this.legend = node("p", null, "legend");
    this.note = node("p", null, "note");
    this.cursor = node("div", null, "cursor");
    this.cursor.hidden = true;
    const draw = node("div", null, "draw");
    this.plot.append(draw, this.cursor);
    this.plot.tabIndex = 0;
    this.plot.setAttribute("role", "img");
    this.plot.setAttribute("aria-label", title + " over steps; arrow keys move the cursor, + and - zoom, 0 shows all");
    this.plot.addEventListener("keydown", (event) => this.key(event));
    figure.append(this.plot, this.legend, this.note);
    this.take(data);
    // Without the handlers of touches, which would keep a finger from scrolling the page.
    const mouse = Object.assign({}, Dygraph.defaultInteractionModel);
    for (const name of ["touchstart", "touchmove", "touchend"]) delete mouse[name];
    this.graph = new Dygraph(draw, this.rows, Object.assign(this.options(), {
      interactionModel: mouse,
      highlightCallback: (event, step) => select(step),
      unhighlightCallback: () => select(null),
      zoomCallback: () => setRange(this.graph.isZoomed("x") ? this.graph.xAxisRange() : null, this),
      underlayCallback: (canvas, area, graph) => this.marks(canvas, area, graph),
    }));
    charts.push(this);
    this.values(null);
  }

  take(data) {
    this.series = data.series;
    this.data = data;
    const rows = new Map();
    this.series.forEach((one, i) => one.points.forEach(([step, value]) => {
      if (!rows.has(step)) rows.set(step, [step, ...this.series.map(() => null)]);
      rows.get(step)[i + 1] = value;
    }));
    this.rows = [...rows.values()].sort((a, b) => a[0] - b[0]);
    if (this.rows.length === 0) this.rows = [[0, ...this.series.map(() => null)]];
  }

  options() {
    const each = {};
    this.series.forEach((one, i) => {
      each["s" + i] = {
        color: color("c" + one.color), strokePattern: one.dashed ? [5, 4] : null, strokeWidth: one.dashed ? 1.5 : 2,
        drawPoints: one.dots === true, pointSize: 3,
      };
    });
    const most = shownMax(this.series);
    this.note.textContent = most === null ? "" : "Values above " + compact(most) + " are beyond the upper edge.";
    return {
      labels: ["step", ...Object.keys(each)], series: each, connectSeparatedPoints: true,
      valueRange: most === null ? null : [null, most], highlightCircleSize: 4,
      gridLineColor: color("rule"), axisLineColor: color("dim"), xRangePad: 4, yRangePad: 8 + 14 * (this.data.marks || []).length,
      axes: {
        x: { axisLabelFormatter: compact, drawGrid: false, pixelsPerLabel: 70 },
        y: { axisLabelFormatter: compact, axisLabelWidth: 56, pixelsPerLabel: 36 },
      },
    };
  }

  update(data) {
    this.take(data);
    this.graph.updateOptions(Object.assign(this.options(), { file: this.rows }));
    this.values(selected);
  }

  marks(canvas, area, graph) {
    let line = 0;
    for (const mark of this.data.marks || []) {
      const x = graph.toDomXCoord(mark.step);
      if (x < area.x || x > area.x + area.w) continue;
      canvas.strokeStyle = canvas.fillStyle = color("c" + mark.color);
      canvas.setLineDash([2, 3]);
      canvas.beginPath();
      canvas.moveTo(x, area.y);
      canvas.lineTo(x, area.y + area.h);
      canvas.stroke();
      canvas.setLineDash([]);
      canvas.font = "12px system-ui, sans-serif";
      canvas.textAlign = x > area.x + area.w / 2 ? "right" : "left";
      canvas.fillText(mark.label, x + (canvas.textAlign === "right" ? -5 : 5), area.y + 12 + 14 * line++);
    }
  }

  // Returns the row whose step is nearest.
  nearest(step) {
    let low = 0, high = this.rows.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.rows[middle][0] <= step) low = middle; else high = middle;
    }
    return step - this.rows[low][0] <= this.rows[high][0] - step ? low : high;
  }

  // Writes each line's name, with its value at the cursor or else its last one.
  values(step) {
    const parts = step === null ? [] : [node("span", "step " + compact(this.rows[this.nearest(step)][0]), "dim")];
    this.series.forEach((one, i) => {
      const part = node("span"), at = step === null ? this.rows.length - 1 : this.nearest(step);
      let row = at;
      while (row > 0 && this.rows[row][i + 1] === null) --row;
      part.append(node("i", null, "c" + one.color + (one.dashed ? " dash" : "")), one.label,
        node("b", compact(this.rows[row][i + 1])));
      parts.push(part);
    });
    this.legend.replaceChildren(...parts);
  }

  select(step) {
    this.cursor.hidden = step === null;
    this.values(step);
    if (step === null) return this.graph.clearSelection();
    const row = this.nearest(step);
    this.graph.setSelection(row);
    const x = this.graph.toDomXCoord(this.rows[row][0]), area = this.graph.getArea();
    this.cursor.hidden = x < area.x || x > area.x + area.w;
    this.cursor.style.left = x + "px";
  }

  key(event) {
    const [from, to] = this.graph.xAxisRange(), middle = selected === null ? (from + to) / 2 : selected;
    const keys = {
      ArrowLeft: () => this.move(-1), ArrowRight: () => this.move(1), Escape: () => select(null),
      "+": () => setRange([middle - (to - from) / 4, middle + (to - from) / 4]),
      "-": () => setRange([middle - (to - from), middle + (to - from)]), 0: () => setRange(null),
    };
    if (!keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
  }

  move(by) {
    const last = this.rows.length - 1;
    const row = selected === null ? (by < 0 ? last : 0) : this.nearest(selected) + by;
    select(this.rows[Math.max(0, Math.min(last, row))][0]);
  }
}

let selected = null;  // The step at the cursor.
function select(step) {
  selected = step;
  for (const chart of charts) chart.select(step);
}

// Shows these steps in all pictures but `but`; null: all steps.
function setRange(range, but) {
  for (const chart of charts) if (chart !== but) chart.graph.updateOptions({ dateWindow: range });
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of charts) chart.update(chart.data);
});
