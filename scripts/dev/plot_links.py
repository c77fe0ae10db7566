#!/usr/bin/python3
"""Draws the speed over links of 1 and 10 Gbit/s for each setting.

usage: scripts/dev/plot_links.py JSON --out=FILE.svg [--page=FILE.md]

JSON is a file of `benchmarks/links/links.py --json=FILE`. A bar is the median of the repeats with their
range; the diamond is the prediction of `hdps plan`; the line is the speed at which the link alone would
carry the bytes of these steps. The table replaces the text between the two marks of the page. Needs
python3-matplotlib (scripts/install_deps.sh --plots).
"""
import argparse
import json
import pathlib
import sys

from plot_bench import FIGURE, LIMIT, plt, shown
from plot_overview import LIGHT, PEERS

WIDTH = 0.38
BEGIN, END = "<!-- table: scripts/dev/plot_links.py -->\n", "<!-- end of the table -->\n"
COLOURS = [FIGURE, LIGHT]  # The first rate, the second.


def draw_case(axes, case, results):
    """Draws the settings of one case side by side, with a bar per rate."""
    settings = list(dict.fromkeys(r["setting"] for r in results))
    rates = sorted({r["gbit"] for r in results})
    top = 1.15 * max(max(r["samples"] + [r["planned"]]) for r in results)
    for r in results:
        at = settings.index(r["setting"]) + WIDTH * (rates.index(r["gbit"]) - (len(rates) - 1) / 2)
        value = r["examples_per_second"]
        error = [[value - min(r["samples"])], [max(r["samples"]) - value]]
        axes.bar(at, value, WIDTH, color=COLOURS[rates.index(r["gbit"]) % 2], yerr=error,
                 error_kw={"elinewidth": 0.8, "capsize": 2}, zorder=1)
        axes.plot([at], [r["planned"]], marker="D", color="black", markersize=3.5, zorder=3)
        if r["link_bound"] <= top:
            half = WIDTH / 2
            axes.plot([at - half, at + half], [r["link_bound"]] * 2, color=LIMIT, linewidth=1.6, zorder=2)
        axes.annotate(shown(value), (at, 0), xytext=(0, 3), textcoords="offset points", ha="center",
                      fontsize=7, color="white")
    axes.set_ylim(0, top)
    axes.set_xticks(range(len(settings)), settings)
    axes.set_ylabel("examples/s")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1e3:g} k")
    axes.set_title(PEERS.get(case, case), loc="left", weight="bold", fontsize=9)
    return rates


def legend_of(axes, rates):
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[i % 2]) for i in range(len(rates))]
    words = [f"{rate:g} Gbit/s, measured" for rate in rates]
    handles += [plt.Line2D([], [], marker="D", color="black", linestyle="", markersize=3.5),
                plt.Line2D([], [], color=LIMIT, linewidth=1.6)]
    words += ["predicted by hdps plan", "the link alone"]
    axes.axis("off")
    axes.legend(handles, words, loc="center left", ncol=4, fontsize=8, frameon=False).set_in_layout(False)


def table_of(read, about):
    """Formats the results as a table, a line per rate and setting, with their source."""
    lines = [about.replace("\n", "; ") + ".", "",
             "| case | Gbit/s | setting | examples/s (range) | MB a step, out / in | share of the link | "
             "of the cores | bound by | `hdps plan` | over measured |",
             "|---|--:|---|--:|--:|--:|--:|---|--:|--:|"]
    for r in read["results"]:
        spread = f"{min(r['samples']):,.0f} to {max(r['samples']):,.0f}"
        lines.append(f"| {r['case']} | {r['gbit']:g} | {r['setting']} | "
                     f"{r['examples_per_second']:,.0f} ({spread}) | "
                     f"{r['bytes_out'] * 1e-6:.2f} / {r['bytes_in'] * 1e-6:.2f} | {r['link_share']:.2f} | "
                     f"{r['cores_share']:.2f} | {r['bound_by']} | {r['planned']:,.0f} | {r['ratio']:.2f} |")
    told = [r["told_share"] for r in read["results"] if r["setting"] != "rows kept"]
    sockets = ", ".join(f"{float(rate):g} Gbit/s: {got:.2f}" for rate, got in read["bare_socket_gbit"].items())
    lines += ["", f"A bare socket over these links, in Gbit/s: {sockets}. Of the bytes that the devices "
              f"counted, the members told {min(told):.3f} to {max(told):.3f} (but under `rows kept`, whose "
              "sums go from worker to worker by Gloo)."]
    return "\n".join(lines) + "\n"


def renew_page(path, table):
    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        sys.exit(f"plot_links.py: error: {path} has no place for the table; it stands between "
                 f"'{BEGIN.strip()}' and '{END.strip()}'")
    before, behind = text.split(BEGIN)[0], text.split(END)[1]
    path.write_text(before + BEGIN + table + END + behind, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("json", help="what benchmarks/links/links.py wrote with --json")
    parser.add_argument("--out", required=True, help="the picture")
    parser.add_argument("--page", type=pathlib.Path, help="the page whose table is renewed")
    arguments = parser.parse_args()
    try:
        read = json.loads(pathlib.Path(arguments.json).read_text())
        results, machine = read["results"], read["machine"]
        about = (f"{read['machines']} machines, each a server, a worker and half of the cores of this one: "
                 f"{machine['cpu']}, {machine['cores']} cores, {machine['vector_width']}\n"
                 f"commit {read['commit']}, {read['time'][:10]}; medians of {read['repeats']}, whiskers: range")
        cases = list(dict.fromkeys(r["case"] for r in results))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"plot_links.py: error: {arguments.json} is not what links.py --json=FILE writes: {error}")
    figure, axes = plt.subplots(len(cases) + 1, 1, figsize=(9, 2.4 * len(cases) + 1), squeeze=False,
                                layout="constrained",
                                gridspec_kw={"height_ratios": [1] * len(cases) + [0.12]})
    rates = []
    for axis, case in zip(axes[:, 0], cases):
        rates = draw_case(axis, case, [r for r in results if r["case"] == case])
    legend_of(axes[-1, 0], rates)
    figure.suptitle(f"Two workers and two servers on two machines\n{about}", fontsize=9, ha="left", x=0.01)
    figure.savefig(arguments.out, metadata={"Date": None})
    print(arguments.out)
    if arguments.page:
        renew_page(arguments.page, table_of(read, about))
        print(arguments.page)


if __name__ == "__main__":
    main()
