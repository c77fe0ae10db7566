// Asks the job once a second and shows what is new.

const job = { version: 0, curves: new Map(), events: [], checkpoints: new Map(), bodies: new Map(), texts: new Map() };
const EVENTS_MAX = 200, CHECKPOINTS_MAX = 50, ASK_MS = 1000, ANSWER_MS = 5000;

// Adds the points that are new; those behind the first of them were lost with a member and are trained again.
function addCurves(curves, all) {
  if (all) job.curves.clear();
  for (const curve of curves) {
    const key = curve.name + "\n" + curve.set, kept = job.curves.get(key);
    if (!kept || curve.whole) {
      job.curves.set(key, curve);
    } else if (curve.points.length) {
      kept.points = kept.points.filter((point) => point[0] < curve.points[0][0]).concat(curve.points);
    }
  }
  return [...job.curves.values()];
}

function take(page) {
  const all = page.configuration !== undefined;
  if (all) {
    job.events = [];
    job.checkpoints.clear();
  }
  job.version = page.version;
  page.training.curves = addCurves(page.training.curves, all);
  page.events.events = job.events = job.events.concat(page.events.events).slice(-EVENTS_MAX);
  for (const one of page.checkpoints.newest) job.checkpoints.set(one.step + one.kind, one);
  page.checkpoints.newest = [...job.checkpoints.values()].sort((a, b) => b.step - a.step).slice(0, CHECKPOINTS_MAX);
  document.title = (page.health.job || "hdps") + ", step " + whole(page.training.step);
  document.getElementById("job").textContent = page.health.job || "hdps";
  for (const [key, title, draw] of PANELS) {
    if (page[key] === undefined) continue;
    if (!job.bodies.has(key)) job.bodies.set(key, panel(document.getElementById("panels"), key, title));
    const body = job.bodies.get(key), text = JSON.stringify(page[key]);
    if (job.texts.get(key) === text) continue;
    job.texts.set(key, text);
    // A box keeps its place when its panel is made anew.
    const tops = [...body.querySelectorAll(".box")].map((one) => one.scrollTop);
    const focus = [...body.querySelectorAll(".box")].indexOf(document.activeElement);
    if (key !== "training") body.replaceChildren();
    draw(body, page[key]);
    [...body.querySelectorAll(".box")].forEach((one, i) => {
      one.scrollTop = tops[i] || 0;
      if (i === focus) one.focus({ preventScroll: true });
    });
  }
}

let lastAnswer = null;
async function ask() {
  const says = document.getElementById("answers");
  try {
    const answer = await fetch("api/v1/page?since=" + job.version, { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) });
    if (answer.status === 401) {
      says.textContent = "This browser is not let in: open the address that the job printed, with its token.";
    } else {
      if (!answer.ok) throw new Error(answer.status);
      take(await answer.json());
      lastAnswer = new Date();
      says.textContent = "";
      says.className = "";
    }
  } catch (error) {
    says.textContent = "The job does not answer" + (lastAnswer ? " since " + lastAnswer.toLocaleTimeString("sv") : "") +
      "; what is shown is what it said last. " + (error.name === "TypeError" ? "" : error.message);
    says.className = "warn";
  }
  setTimeout(ask, ASK_MS);
}

ask();
