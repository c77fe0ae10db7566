"""Tests man pages and completion, which scripts/dev/manuals.py makes from the programs' own descriptions."""
import collections
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import completed_lines
import harness

PROGRAMS = ["hdps", "hdps-scheduler", "hdps-server", "hdps-worker"]
SHELLS = {"bash": completed_lines.by_bash, "zsh": completed_lines.by_zsh, "fish": completed_lines.by_fish}
# What each line may go on with; of a path the last part, of a flag with its value the value.
LINES = {
    "hdps tr": {"train", "trace"},
    "hdps train --jo": {"--job"},
    "hdps train --log=": {"info", "warning", "error"},
    "hdps train --log=w": {"warning"},
    "hdps export --format=s": {"safetensors", "serving"},
    "hdps generate --format=": {"csv", "idx"},
    "hdps train --job=d/ce": {"census.json"},
    "hdps train --out=d/": {"sub"},
    "hdps diff d/": {"census.json", "sub"},
    "hdps-server --spill": {"--spill_path"},
    "hdps-worker --log ": {"info", "warning", "error"},
    "hdps-server --log_file=d/ce": {"census.json"},
}
WRONG = "no_such_word"
# "expected a, b or c" or "expected one of a, b", where nothing but words stands.
ALTERNATIVES = re.compile(r"expected (?:one of ((?:[\w-]+, )*[\w-]+)|((?:[\w-]+, )*[\w-]+ or [\w-]+))(?:[;.]|$)", re.M)


def described():
    said = [harness.run([harness.program(name), "--describe"]).stdout for name in PROGRAMS]
    return [json.loads(line) for text in said for line in text.splitlines()]


def words_of(program):
    return [harness.program(program.split()[0]), *program.split()[1:]]


def without(shell):
    return None if shutil.which(shell) else f"there is no {shell} (scripts/install_deps.sh --developer)"


class Manuals(harness.Case):
    def setUp(self):
        super().setUp()
        self.made = self.out("made")
        harness.run([sys.executable, harness.ROOT / "scripts" / "dev" / "manuals.py", f"--bin={harness.BIN}",
                     f"--out={self.made}"])

    def page(self, program):
        return gzip.decompress((self.made / "man1" / f"{program.replace(' ', '-')}.1.gz").read_bytes()).decode()

    def test_help_page_and_completion_have_the_same_flags(self):
        """Flag by flag, of every command; the shells are asked for all that begin with two dashes."""
        commands = described()
        listed = re.findall(r"^  (\w+) +\S", harness.run([harness.program("hdps"), "help"]).stdout.split("example:")[0], re.M)
        self.assertEqual([f"hdps {name}" for name in listed if name != "help"],
                         [c["program"] for c in commands if c["program"].startswith("hdps ")])
        pages = {page.name for page in (self.made / "man1").iterdir()}
        self.assertEqual(pages, {"hdps.1.gz"} | {f"{c['program'].replace(' ', '-')}.1.gz" for c in commands})
        lines = [f"{command['program']} --" for command in commands]
        offered = {shell: asked(self.made, lines, self.small_folder()) for shell, asked in SHELLS.items() if not without(shell)}
        for i, command in enumerate(commands):
            helped = set(re.findall(r"^  --(\w+)", harness.run([*words_of(command["program"]), "--help"]).stdout, re.M))
            paged = set(re.findall(r"^\.TP\n\\fB\\-\\-(\w+)\\fR", self.page(command["program"]), re.M))
            self.assertEqual(helped, paged, command["program"])
            self.assertEqual(helped, {flag["name"] for flag in command["flags"]})
            for shell, sets in offered.items():
                self.assertEqual(helped, {word.removeprefix("--").removesuffix("=") for word in sets[i]}, (shell, lines[i]))
        harness.figure(f"{len(commands)} commands with {sum(len(c['flags']) for c in commands)} flags: the same in help, "
                       f"man page and {', '.join(offered)}")

    def test_an_example_stands_first_and_has_known_flags(self):
        for command in described():
            page = self.page(command["program"])
            self.assertLess(page.index(".SH EXAMPLE"), page.index(".SH SYNOPSIS"))
            shown = page.split(".SH EXAMPLE\n.EX\n")[1].split("\n")[0].replace("\\-", "-")
            self.assertTrue(shown.startswith(command["program"]), shown)
            self.assertEqual(set(re.findall(r"--(\w+)", shown)) - {flag["name"] for flag in command["flags"]}, set(), shown)

    @unittest.skipIf(without("mandoc"), without("mandoc"))
    def test_pages_are_clean(self):
        pages = sorted((self.made / "man1").iterdir())
        for page in pages:
            said = subprocess.run(["mandoc", "-T", "lint", page], capture_output=True, text=True)
            self.assertEqual((said.returncode, said.stdout), (0, ""))
        spoiled = self.out("spoiled.1")
        spoiled.write_text(self.page("hdps train").replace(".SH EXAMPLE", ".SH", 1).replace(".EE", ".E_", 1))
        self.assertNotEqual(subprocess.run(["mandoc", "-T", "lint", spoiled], capture_output=True).stdout, b"")

    def small_folder(self):
        folder = self.out("folder")
        (folder / "d" / "sub").mkdir(parents=True, exist_ok=True)
        (folder / "d" / "census.json").touch()
        return folder

    def complete(self, shell, made):
        """What a shell offers for each of LINES."""
        sets = SHELLS[shell](made, list(LINES), self.small_folder())
        self.assertEqual(len(sets), len(LINES), sets)
        return {line: {word.rstrip("/").removesuffix("=").split("=")[-1].split("/")[-1] for word in offered}
                for line, offered in zip(LINES, sets)}

    def test_shells_complete_lines(self):
        for shell in SHELLS:
            with self.subTest(shell):
                if without(shell):
                    self.skipTest(without(shell))
                self.assertEqual(self.complete(shell, self.made), LINES)
                harness.figure(f"{shell} completes {len(LINES)} lines")
        # A flag and a word that are missing are noticed.
        spoiled = self.out("spoiled")
        shutil.copytree(self.made, spoiled, symlinks=True)
        for file in (spoiled / "bash" / "hdps", spoiled / "zsh" / "_hdps", spoiled / "fish" / "hdps.fish"):
            file.write_text(file.read_text().replace("warning", "waning"))
        for shell in SHELLS:
            if not without(shell):
                self.assertNotEqual(self.complete(shell, spoiled), LINES, shell)

    def refusals(self, program, flag, value):
        """What a command says to a value of a flag, with others that let it come so far."""
        own = {f["name"] for f in self.flags[program]}
        out = self.out("asked")
        given = {"job": self.job, "out": out / "new", "checkpoint": self.trained, "scheduler": f"ipc://{out}/none",
                 "format": "safetensors" if program == "hdps export" else "csv", "kind": "digits" if flag == "format" else "log"}
        if program == "hdps export" and flag in ("index", "item_text", "items"):
            given["format"] = "vectors"
        if program == "hdps prepare":
            del given["job"]  # It has files instead.
        flags = [f"--{name}={given[name]}" for name in given if name in own and name != flag]
        arguments = [str(self.data)] if program == "hdps prepare" else []
        extra = ["--print_config"] if "print_config" in own and flag != "resume" else []
        if program in ("hdps train", "hdps-scheduler"):
            extra.append("--set=train.max_steps=1")
        if program == "hdps generate":
            extra += [f"--{rows}=20" for rows in ("rows", "eval_rows") if rows != flag]
        done = subprocess.run([*words_of(program), *arguments, *flags, *extra, f"--{flag}={value}"], capture_output=True,
                              text=True, timeout=300, stdin=subprocess.DEVNULL, cwd=self.folder)
        shutil.rmtree(out, ignore_errors=True)
        return done.stderr if done.returncode == 2 else ""

    def test_words_are_those_that_programs_take(self):
        """Each word of a flag is taken and another refused; a flag without words does not ask for some."""
        self.job = harness.CENSUS
        self.trained = self.out("trained")
        harness.train(self.job, self.trained, sets={"train.max_steps": 1})
        harness.run([harness.program("hdps"), "generate", f"--out={self.out('log')}", "--rows=200", "--eval_rows=20"])
        self.data = self.out("log") / "train.tsv"
        self.flags = {c["program"]: c["flags"] for c in described()}
        seen = collections.Counter()
        for program, flags in self.flags.items():
            if program in ("hdps-server", "hdps-worker", "hdps serve", "hdps-scheduler", "hdps member"):
                continue  # They would run on; their words are those of the others.
            for flag in flags:
                name, words = flag["name"], flag["takes"].split("|") if "|" in flag["takes"] else []
                if flag["type"] != "string" or name in ("flagfile", "set"):
                    continue
                said = self.refusals(program, name, WRONG)
                about = [line for line in said.splitlines() if f"--{name}={WRONG}" in line]
                if not words:
                    asks = [line for line in about if ALTERNATIVES.search(line)]
                    self.assertEqual(asks, [], f"{program}: common/process/description.cc has no words for --{name}")
                    continue
                if not about:
                    seen["words of flags that other flags hide"] += 1
                    continue
                for word in words:
                    seen["words taken"] += 1
                    self.assertNotIn(f"--{name}={word}: expected", self.refusals(program, name, word), program)
                named = ALTERNATIVES.search(about[0])
                if named:
                    self.assertLessEqual(set(re.split(", | or ", named[1] or named[2])), set(words), f"{program} --{name}")
        harness.figure(", ".join(f"{count} {what}" for what, count in seen.items()))
        self.assertGreater(seen["words taken"], 40)


if __name__ == "__main__":
    harness.main()
