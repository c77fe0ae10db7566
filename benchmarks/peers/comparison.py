"""Computes figures from the runs of one case: medians, ranges, the best peer, ratios, goals.

Nothing here runs anything, so that it can be tested where no peer is installed.
"""
import dataclasses
import statistics

import cases

# Fields of a run, and their names in the figures.
PHASES = {"first_epoch": "from an empty table", "second_epoch": "rows there"}
# Phase and form of hdps for which the goals are set.
GOAL_PHASE, GOAL_FORM = "second_epoch", "hdps, 1 server + 1 worker"
# The model of pytorch_tuned.py over rows of hdps: in one process, and as the worker of daemons.
ROWS_FORMS = ("rows of hdps, one process", "rows of hdps, 1 server + 1 worker")
# The last of them with a server that may keep a part of its bytes of rows in memory; over the same without a limit.
LIMITED_FORM, LIMITED_PART, LIMITED_GOAL = "rows of hdps, a quarter in memory", 4, 0.5
# The most frequent rows stay at the worker, on its GPU.
HOT_FORM, HOT_ROWS = "hdps, hot rows kept", 160_000


@dataclasses.dataclass(frozen=True)
class System:
    form: str  # "pytorch tuned", "hdps, one process".
    precision: str  # Of its products.

    @property
    def name(self):
        """Includes the precision if a form has more than one."""
        if self.form == "pytorch tuned":
            return "%s %s" % (self.form, self.precision)
        return self.form if self.precision == "fp32" else self.form.replace("hdps", "hdps " + self.precision)

    @property
    def is_peer(self):
        return self.form.startswith("pytorch")


def systems(peer_bf16, our_bf16, fbgemm=False, rows=False, limited=False):
    """Returns the systems in the order of their turns."""
    if limited:
        return [System(ROWS_FORMS[1], "fp32"), System(LIMITED_FORM, "fp32")]
    peers = [System("pytorch plain", "fp32"), System("pytorch tuned", "fp32")]
    ours = [System("hdps, one process", "fp32"), System(GOAL_FORM, "fp32")]
    if fbgemm:
        peers.append(System("pytorch fbgemm", "fp32"))
    if peer_bf16:
        peers.append(System("pytorch tuned", "bf16"))
    if our_bf16:
        ours += [System(system.form, "bf16") for system in ours]
    if rows:
        ours += [System(form, "fp32") for form in ROWS_FORMS]
    return peers + ours


def systems_on_gpu():
    """Returns the systems with a GPU: plain PyTorch as most run it, hdps also with its hot rows on the GPU."""
    peers = [System("pytorch plain", "tf32")]
    ours = []
    for precision in ("fp32", "tf32", "bf16"):
        peers.append(System("pytorch tuned", precision))
        ours += [System("hdps, one process", precision), System(HOT_FORM, precision)]
    return peers + ours


def over_of(runs, phase, system):
    """Returns the system that one's speed is shown over, or None."""
    if system.form == LIMITED_FORM:
        return next(other for other in runs if other.form == ROWS_FORMS[1])
    return best_peer(runs, phase, system.precision)


def best_peer(runs, phase, precision):
    """Returns the peer of that precision with the highest median, or None."""
    peers = [system for system in runs if system.is_peer and system.precision == precision]
    return max(peers, default=None,
               key=lambda system: statistics.median(run[phase] for run in runs[system]))


def goal_of(case, system, phase):
    if phase != GOAL_PHASE:
        return None
    if system.form == LIMITED_FORM:
        return LIMITED_GOAL
    if system.form in ROWS_FORMS:
        return case.rows_goals[ROWS_FORMS.index(system.form)] or None
    if system.form != GOAL_FORM:
        return None
    return case.goal if system.precision == "fp32" else cases.BF16_GOAL


def figures_of(case, runs, about):
    """Returns a record for each phase and system. `runs`: each system's runs in order; `about`: fields of
    every figure, such as the processor."""
    figures = []
    for phase, words in PHASES.items():
        for system, own in runs.items():
            speeds = [run[phase] for run in own]
            speed = statistics.median(speeds)
            peer = over_of(runs, phase, system)
            ratio = None
            if peer:
                ratio = speed / statistics.median(run[phase] for run in runs[peer])
            aucs = [run["auc"] for run in own if run.get("auc") is not None]
            figures.append({
                "case": case.name, "phase": words, "system": system.name,
                "precision": system.precision, "version": own[0]["version"], **about,
                "repeats": len(own), "examples_per_second": speed, "low": min(speeds),
                "high": max(speeds), "best_peer": peer.name if peer else None, "ratio": ratio,
                "goal": goal_of(case, system, phase) if peer else None,
                "auc": statistics.median(aucs) if aucs else None,
                "copied_bytes_a_step": own[0].get("copied_bytes_a_step"),
                "memory_limit": own[0].get("memory_limit")})
    return figures


def line_of(figure):
    """Formats a figure for the terminal."""
    words = "%-12s %-20s %-31s %9.0f (%.0f .. %.0f) examples/s" % (
        figure["case"], figure["phase"], figure["system"], figure["examples_per_second"],
        figure["low"], figure["high"])
    if figure["ratio"] is not None and figure["system"] == figure["best_peer"]:
        words += ", the best peer in " + figure["precision"]
    elif figure["ratio"] is not None:
        words += ", %.2f of %s" % (figure["ratio"], figure["best_peer"])
    if figure["goal"] is not None:
        words += " (goal %.1f)" % figure["goal"]
    if figure["copied_bytes_a_step"] is not None:
        words += ", %.2f MB copied a step" % (figure["copied_bytes_a_step"] / 1e6)
    if figure["memory_limit"] is not None:
        words += ", %.0f MiB for the server" % (figure["memory_limit"] / 2**20)
    return words + "; %s, %s" % (figure["version"], figure["precision"])


def lines_of(figures):
    """Prints all figures of a case, and the AUCs of its systems side by side."""
    lines = [line_of(figure) for figure in figures]
    first = [figure for figure in figures if figure["phase"] == PHASES["first_epoch"]]
    aucs = ["%s %.4f" % (figure["system"], figure["auc"])
            for figure in first if figure["auc"] is not None]
    if aucs:
        lines.append("%-12s AUC behind the first epoch: %s" % (figures[0]["case"], "; ".join(aucs)))
    return lines
