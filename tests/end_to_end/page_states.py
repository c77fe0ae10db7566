"""Documents of /api/v1/page for developing and testing the page: one of a hundred members, of a standstill, of a job that
has just begun, of an async job. Each is a function of the second that is asked for, so a page sees them change."""
import math

STAGES = ["read_wait", "pull_wait", "compute", "reduce_dense", "keep", "push_wait", "other"]
START = 1_790_000_000
POINTS_MAX = 2000


def noise(*numbers):
    """A number in [0, 1) that depends on these alone."""
    value = math.sin(sum((i + 1) * 12.9898 * n for i, n in enumerate(numbers)) + 78.233) * 43758.5453
    return value - math.floor(value)


def curve(name, of_set, steps, value, since_step):
    every = max(1, math.ceil(steps / POINTS_MAX / 10)) * 10
    return {"name": name, "set": of_set, "points": [[step, value(step)] for step in range(every, steps + 1, every)
                                                    if step > since_step]}


def curves(steps, since_step, sets):
    loss = lambda step: 0.45 + 0.35 * math.exp(-step / 800) + 0.02 * noise(step)
    found = [curve("train_loss", "", steps, loss, since_step),
             curve("examples_per_second", "", steps, lambda step: 90_000 + 9000 * noise(step, 1), since_step),
             curve("learning_rate", "", steps, lambda step: 0.01 * 0.5 ** (step // 4000), since_step)]
    for i, one in enumerate(sets):
        points = range(500, steps + 1, 500)
        for name, value in (("logloss", lambda s, i=i: 0.5 + 0.2 * math.exp(-s / 900) + 0.03 * i),
                            ("auc", lambda s, i=i: 0.91 - 0.2 * math.exp(-s / 700) - 0.02 * i)):
            found.append({"name": name, "set": one, "points": [[s, value(s)] for s in points if s > since_step]})
    return [one for one in found if one["points"] or since_step <= 0]


def worker_time(i, tick, slow, stuck):
    parts = {"read_wait": 0.02 + 0.05 * noise(i, tick), "pull_wait": 0.15 + 0.1 * noise(i, tick, 2),
             "compute": 0.55 + (0.6 if i == slow else 0.1 * noise(i)), "reduce_dense": 0.08, "keep": 0.01,
             "push_wait": 0.1 * noise(i, tick, 3), "other": 0.02}
    if stuck is not None and i != stuck:
        parts["push_wait"] += 0.3
    doing, waits, lasts = "compute", [], 0.01
    if stuck is not None:
        doing, waits, lasts = ("read", [], 12.0 + tick) if i == stuck else ("pull", ["server 0"], 11.5 + tick)
    elif noise(i, tick, 4) > 0.7:
        doing, waits, lasts = "pull", [f"server {i % 3}"], 0.02
    return {"name": f"worker {i}", "seconds": [round(parts[s], 4) for s in STAGES], "doing": doing, "waits_for": waits,
            "for_seconds": lasts}


def quantiles(name, base, ratio, over):
    return {"name": name, "p50": base * ratio, "p90": base * ratio * 1.3, "p99": base * ratio * 2.1, "count": 12000,
            "ratio": ratio, "steps_over": over, "straggler": over >= 20}


def state(tick, servers, workers, steps, since=0, sets=("", "late"), slow=None, stuck=None, losses=0, staleness=None,
          sentence="", missing=""):
    """One document; `since`: the version that the asker has. The version is tick + 1."""
    version, full = tick + 1, since <= 0
    since_step = -1 if full else steps(since - 1)
    now, step = START + tick, steps(tick)
    saved = [at for at in range(1000, step + 1, 1000) if full or at > since_step]
    events = [{"time": START + at / 10, "step": at, "kind": "event", "text": f"worker {at // 1000 % workers} was lost",
               "cause": "its process has ended", "seconds": 12.5} for at in range(1500, 1500 + 1000 * losses, 1000)]
    events += [{"time": START + 2, "step": 20, "kind": "warning", "text": "train.lookahead has no effect here", "cause": "",
                "seconds": None}]
    health = {"sentence": sentence or "nothing waits: 96 steps in the last 1.0 s", "advice": "", "kind": "runs", "state": "train",
              "job": "clicks", "out": "/data/out/clicks", "members": {"servers": {"alive": servers, "expected": servers},
                                                                     "workers": {"alive": workers, "expected": workers}},
              "last_event": events[0] if step else None, "missing": missing}
    evaluations = [{"set": one, "metric": metric, "value": value, "step": step // 500 * 500}
                   for one in sets for metric, value in (("auc", 0.8912), ("logloss", 0.4871))] if step >= 500 else []
    page = {
        "schema": 1, "version": version, "unix_time": now, "health": health,
        "training": {"step": step, "epoch": 1 + step // 5000, "epochs": 10, "epoch_progress": step % 5000 / 5000,
                     "max_steps": None, "examples": step * 256 * workers, "examples_per_second": 94_312.5 if step else None,
                     "loss": 0.4713 if step else None, "learning_rate": 0.01, "line": f"step {step}", "evaluations": evaluations,
                     "curves": curves(step, since_step, sets), "curves_from": since},
        "time": {"stages": STAGES, "workers": [worker_time(i, tick, slow, stuck) for i in range(workers)] if step else []},
        "stragglers": {"workers": [quantiles(f"worker {i}", 0.0105, 1.9 if i == slow else 0.97 + 0.06 * noise(i, 9),
                                             34 if i == slow else 0) for i in range(workers)] if step else [],
                       "servers": [quantiles(f"server {i}", 0.0008, 0.97 + 0.06 * noise(i, 8), 0)
                                   for i in range(servers)] if step else []},
        "rows": {"tables": [{"table": name, "rows": {"memory": step * 90 + 11, "disk": step * 40},
                             "bytes": {"memory": step * 9000, "disk": step * 3000}, "admitted": step * 130 + 11, "evicted": 0,
                             "fetched": step * 2, "keys_pulled": step * 700} for name in ("wide", "deep")],
                 "kept_hit_rate": 0.83,
                 "staleness": {"bounds": [0, 1, 2, 4, 8, 16, 32, 64], "counts": staleness or [step, 0, 0, 0, 0, 0, 0, 0, 0]},
                 "push_staleness": {"bounds": [0, 1, 2, 4, 8, 16, 32, 64], "tables": [
                     {"table": "deep", "mean": 1.38, "counts": staleness}] if staleness else []},
                 "pushes_repeated": 0, "pushes_too_old": 0, "steps_dropped": 0, "examples_dropped": 0,
                 "servers": [{"name": f"server {i}", "resident_bytes": 900 << 20, "limit_bytes": (1 << 30) if i % 2 else 0,
                              "rows": step * 90 // servers, "bytes": step * 9000 // servers} for i in range(servers)]},
        "checkpoints": {"newest": [{"step": at, "time": START + at / 10, "bytes": 73_400_320, "seconds": 1.25,
                                    "kind": "changes" if at % 4000 else "full", "verified": True,
                                    "path": f"/data/out/clicks/checkpoint/step_{at}"} for at in reversed(saved[-10:])],
                        "resume": "hdps train --job=clicks.json --out=/data/out/clicks" if step >= 1000 else ""},
        "events": {"events": events if full else []}}
    if full:
        page["configuration"] = {"settings": [
            {"path": "train.batch_size", "value": "256", "from": "file"},
            {"path": "train.epochs", "value": "10", "from": "--set"},
            *({"path": f"model.setting_{i}", "value": str(i), "from": "default"} for i in range(120))]}
        page["about"] = {"version": "0.1.0", "arithmetic": [{"member": "worker 0", "text": "32-bit, oneDNN, AVX2"}],
                         "python": None, "links": [{"text": "figures of all members", "path": "/api/v1/figures"}]}
    return page


def hundred_members(tick, since):
    return state(tick, 40, 60, lambda t: 20_000 + 10 * t, since, slow=17, losses=3)


def standstill(tick, since):
    return state(tick, 2, 4, lambda t: 1600, since, stuck=1, sentence=(
        "server 0, server 1 and 3 workers wait for worker 1, which has read no example for 12.0 s: stage read, file part-3.gz"))


def fresh(tick, since):
    page = state(tick, 2, 4, lambda t: 0, since, missing="1 of 4 workers has not joined: worker 3",
                 sentence="the job has not begun: rendezvous for 1 of 4 workers (worker 3) to join")
    page["health"]["members"]["workers"]["alive"] = 3
    return page


def async_job(tick, since):
    return state(tick, 2, 4, lambda t: 3000 + 7 * t, since, sets=("",), slow=3, losses=1,
                 staleness=[1200, 900, 400, 210, 60, 12, 3, 0, 0])


STATES = {"hundred_members": hundred_members, "standstill": standstill, "fresh": fresh, "async_job": async_job}

