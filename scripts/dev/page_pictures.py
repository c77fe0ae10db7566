#!/usr/bin/env python3
"""Takes the pictures of docs/watching.md with headless Chromium: of the page at 1200 and 390 pixels, light and dark, with a
hundred made-up members; of a real job of 2 servers and 4 workers; of a report of two runs.

usage: HDPS_BIN=build/bin scripts/dev/page_pictures.py [--out=docs/watching]
"""
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))
import browser  # noqa: E402
import harness  # noqa: E402
import page_server  # noqa: E402

# What of a page is in a picture: the pages are long, and pictures of text are large.
PAGE_PIXELS, PHONE_PIXELS = 1400, 1900
HDPS = harness.program("hdps")


def picture(out, name, address, shown, width=1200, dark=False, pixels=PAGE_PIXELS):
    with browser.Browser(width, 900, dark=dark) as window:
        window.open(address)
        harness.wait_until(lambda: shown in window.text(), 60, f"{name}: the page never shows '{shown}'")
        window.picture(out / f"{name}.png", pixels)
        said = window.console()
        if said:
            raise SystemExit(f"page_pictures.py: error: {name}: the console says {said}")
    print(f"{out / name}.png has {(out / name).with_suffix('.png').stat().st_size} bytes", flush=True)


def watched(job):
    """The address that a job prints, with its token."""
    for line in job.stderr:
        found = re.search(r"watch at (\S+)", line)
        if found:
            return found[1]
    raise SystemExit("page_pictures.py: error: the job printed no address")


def real_job(out, folder):
    command = [HDPS, "train", f"--job={harness.CENSUS}", f"--out={folder / 'run'}", "--servers=2", "--workers=4",
               "--set=train.epochs=100000,train.eval_every_steps=2000,checkpoint.every_steps=5000"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as job:
        try:
            picture(out, "census", watched(job), "step_0000015000")
        finally:
            job.send_signal(signal.SIGTERM)
            job.stderr.read()


def report(out, folder):
    for name, rate in (("a", 0.006), ("b", 0.02)):
        harness.run([HDPS, "train", f"--job={harness.CENSUS}", f"--out={name}", "--servers=2", "--workers=2",
                     f"--set=train.epochs=8,model.wide_optimizer.learning_rate={rate}"], cwd=folder)
    harness.run([HDPS, "report", "a", "b", "--html=both.html"], cwd=folder)
    picture(out, "report", (folder / "both.html").as_uri(), "Settings that differ", pixels=1500)


def main():
    out = next((pathlib.Path(a.partition("=")[2]) for a in sys.argv[1:] if a.startswith("--out=")), ROOT / "docs" / "watching")
    out.mkdir(parents=True, exist_ok=True)
    server = page_server.PageServer("hundred_members")
    for name, width, dark in (("page", 1200, False), ("page_dark", 1200, True), ("phone_light", 390, False),
                              ("phone", 390, True)):
        picture(out, name, server.address(), "straggler for 34 steps", width, dark,
                PAGE_PIXELS if width > 600 else PHONE_PIXELS)
    with tempfile.TemporaryDirectory() as folder:
        real_job(out, pathlib.Path(folder))
        report(out, pathlib.Path(folder))


if __name__ == "__main__":
    main()
