"""Defines the goals on a GPU and compares a run with them, for gpu_check.py and results_page.py."""
import dataclasses

PRECISIONS = ("fp32", "tf32", "bf16")


@dataclasses.dataclass(frozen=True)
class Goal:
    name: str
    unit: str  # "": a ratio.
    must: float
    aim: float  # 0: none beyond `must`.
    pick: object  # Finds the figure in the JSON of gpu_check.py; None if it was not measured.


def figures(report):
    """Yields all results of hdps-bench in the run, as dicts."""
    for file in report.get("bench", {}).values():
        yield from file.get("results", [])


def bench(report, case, figure, field="value"):
    """The best of the figures whose case begins by `case`."""
    found = [result[field] for result in figures(report)
             if result["case"].startswith(case) and result["figure"] == figure and field in result]
    return max(found, default=None)


def of_peers(report):
    """The best of hdps over the best PyTorch in the precision where that is lowest."""
    best = {}
    for f in report.get("pytorch", {}).get("figures", []):
        if f.get("ratio") is not None and f["system"].startswith("hdps") and f["phase"] == "rows there":
            best[f["precision"]] = max(f["ratio"], best.get(f["precision"], 0))
    return min(best.values(), default=None)


GOALS = [
    Goal("REF-L with host tables", "examples/s", 283_830, 796_892,
         lambda report: bench(report, "ref_l_cuda", "examples")),
    Goal("REF-L with hot rows on the device", "examples/s", 796_892, 2_000_000,
         lambda report: bench(report, "ref_l_hot_rows_cuda", "examples")),
    *[Goal(f"dense layers over their products by cuBLASLt alone, {precision}", "", 0.8, 0,
           lambda report, precision=precision:
           bench(report, f"ref_l_{precision}", "dense layers", "ratio")) for precision in PRECISIONS],
    Goal("share of the time of copies hidden under compute", "", 0.9, 0,
         lambda report: report.get("timeline", {}).get("hidden_share")),
    Goal("beside the best PyTorch, same machine, model and batch", "", 2, 0, of_peers),
]


def judged(report):
    """Returns a dict per goal: figure, ratio to `must`, and "met", "aim met", "MISSED" or "not measured"."""
    rows = []
    for goal in GOALS:
        figure = goal.pick(report)
        verdict = ("not measured" if figure is None else "MISSED" if figure < goal.must
                   else "aim met" if goal.aim and figure >= goal.aim else "met")
        rows.append({"goal": goal.name, "unit": goal.unit, "must": goal.must, "aim": goal.aim or None,
                     "figure": figure, "ratio": None if figure is None else figure / goal.must,
                     "verdict": verdict})
    return rows


def shown(value):
    return "" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def line_of(row):
    """Formats the goals as text."""
    must = shown(row["must"]) + (f", aim {shown(row['aim'])}" if row["aim"] else "")
    if row["figure"] is None:
        return f"{row['goal']}: not measured (goal {must})"
    return f"{row['goal']}: {shown(row['figure'])} {row['unit']}".rstrip() + \
        f", {row['ratio']:.2f} of the goal {must}: {row['verdict']}"
