#!/usr/bin/env python3
"""Checks that pages tell the truth about names: flags, settings, commands, files and tests.

usage: scripts/dev/pages.py [ROOT]          prints the problems, exits 1 if there are any
       scripts/dev/pages.py --words [ROOT]  prints words, longest cell and longest line of each page
       scripts/dev/pages.py --self-test     plants one problem of each kind and sees it noticed

Pages are README.md, SECURITY.md, CONTRIBUTING.md, docs/**/*.md and each README.md beside code.
"""
import atexit
import pathlib
import re
import shutil
import sys
import tempfile

FOLDERS = ["common", "kernels", "embedding", "server", "worker", "scheduler", "tools", "python", "benchmarks",
           "tests", "scripts", "examples", "docs"]
SOURCES = {".h", ".cc", ".cu", ".cuh", ".def", ".py", ".sh", ".cmake", ".txt", ".fbs", ".json", ".service"}
CELL_WORDS_MAX, LINE_COLUMNS_MAX = 40, 160
# A test's inputs: many files whose texts name nothing of ours.
NOT_READ = ("tests/fuzz/corpus/", "tests/fuzz/found/", "tests/references/")

# Sentences that say that something is not there. One of these words beside the name of something
# that is there is a contradiction, unless the sentence is among ALLOWED.
MISSING = re.compile(r"\b(not built|not yet|not supported|unsupported|not implemented|not available|"
                     r"to be built|no support)\b", re.I)
# Names in words, and where the thing is: a row whose file is gone is a problem itself.
FEATURES = {
    "batch normalization": "common/job/layers/batch_norm.cc",
    "layer normalization": "common/job/layers/layer_norm.cc",
    "early stopping": "common/job/spec/train_spec.h",
    "rows for an item": "common/job/recipes/din.cc",
    "sampled softmax": "common/job/spec/loss_kind.h",
    "attention": "common/job/layers/attention.cc",
    "GPU": "kernels/cuda/cuda_ops.cu",
    "NCCL": "worker/collective/nccl_transport.cc",
    "zstd": "worker/data/compressed_file.cc",
    "delta": "embedding/snapshot/snapshot.h",
    "replica": "scheduler/members/replica_plan.h",
    "tutorial": "docs/tutorial.md",
}
# (page, part of the sentence): true where it stands.
ALLOWED = [
    ("docs/records/", ""),  # Records tell what was so at their time.
]
# (page, name): not a name of ours, though it looks like one.
NOT_OURS = {
    ("docs/data.md", "--long"), ("docs/data.md", "--ultra"),  # zstd's
    ("docs/how_to/several_machines.md", "--system"),  # useradd's
    ("docs/how_to/coming_from.md", "optimizer.target"), ("docs/how_to/coming_from.md", "model.train"),  # MindSpore's
    ("docs/formats.md", "checkpoint.format"), ("docs/formats.md", "checkpoint.version"),  # fields of manifests
}
# Programs whose flags are their own.
OTHER_PROGRAMS = re.compile(
    r"\b(cmake|ctest|git|apt|apt-get|docker|podman|systemctl|journalctl|systemd-\w+|setsid|ssh|cat|python3 -m|pip|nvcc|perf|gdb|"
    r"valgrind|zstd|gzip|clang\S*|g\+\+|objdump|readelf|strings|ip|tc|iptables|nft|ufw|firewall-cmd|numactl|taskset|chrt|sysctl|curl|tar|"
    r"diff|grep|sed|awk|du|df|ls|mount|openssl|ps|free|lscpu|nvidia-smi|torchrun|mpirun|dot|kubectl|prometheus|promtool|tensorboard)\b")
# Flags of every program, of gtest, and of libraries that the programs link.
COMMON_FLAGS = {"help", "version", "flagfile", "v", "name", "key", "gtest_filter", "gtest_random_seed", "gtest_repeat"}
# What a run makes, and names that stand for a file of the reader's own.
RUN_FOLDERS = re.compile(r"^(out|build|OUT|DIR|RUN|CHECKPOINT|SPILL|KEYS|NAME|TABLE|FILE|day|logs?|data|run|checkpoint|"
                         r"log|pid|evaluation|step_\d+|http|https|usr|etc|tmp|var|dev|proc|sys|mnt|srv|run_\w+)(/|$)|^[/~$.]|^\.\.?/\.\.")
FILE_NAME = re.compile(r"^[\w@.\-/]+\.(md|h|cc|cu|cuh|py|sh|def|fbs|svg|cmake|service)$")


def pages_of(root):
    found = [root / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")]
    found += sorted((root / "docs").rglob("*.md"))
    for folder in FOLDERS:
        if folder != "docs":
            found += sorted((root / folder).rglob("README.md"))
    return [page for page in found if page.exists()]


def without_comments(text):
    """A page with what nobody reads taken out, each line kept in its place."""
    return re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)


class Truth:
    """What there is: read from the sources once."""

    def __init__(self, root):
        self.root = root
        self.files = {str(file.relative_to(root)) for folder in FOLDERS for file in (root / folder).rglob("*")
                      if file.is_file() and "__pycache__" not in file.parts}
        self.files |= {str(file.relative_to(root)) for file in root.iterdir() if file.is_file()}
        self.files |= {str(file.relative_to(root)) for file in (root / ".ci").rglob("*") if file.is_file()}
        self.names = {file.rsplit("/", 1)[-1] for file in self.files}
        self.folders = {file.rsplit("/", n)[0] for file in self.files for n in range(1, file.count("/") + 1)}
        texts = {file: (root / file).read_text(errors="replace") for file in self.files
                 if pathlib.Path(file).suffix in SOURCES | {".md"} or file in (".ci/run",)
                 if not file.startswith(NOT_READ) and file != "scripts/dev/pages.py"}  # It names what is not there.
        self.code = {file: text for file, text in texts.items() if not file.endswith(".md")}
        self.flags, self.commands, self.flags_of = {}, set(), {}
        self.read_flags()
        self.settings = self.read_settings()
        self.words = self.read_words()
        self.tests = self.read_tests()
        everything = "\n".join(self.code.values())
        self.quoted = set(re.findall(r"[\"'/ `]([\w.\-]+\.\w+)", everything))
        # Flags that scripts take, not those that they hand on: add_argument("--x"), and --x) or == --x of a shell.
        self.script_flags = set(re.findall(
            r"""add_argument\(\s*["']--([a-z][\w\-]*)|(?<=[^\w\-])--([a-z][\w\-]*)(?==?[\w*]*\)|=\*? *\||\]| *\|)"""
            r"""|== "?'?--([a-z][\w\-]*)|["']--([a-z][\w\-]*)["'] in sys""",
            "\n".join(text for file, text in self.code.items() if file.endswith((".py", ".sh")) or file == ".ci/run")))
        self.script_flags = {name for names in self.script_flags for name in names if name}

    def read_flags(self):
        for file, text in self.code.items():
            if not file.endswith(".cc"):
                continue
            for name in re.findall(r"^DEFINE_\w+\(\s*(\w+),", text, re.M):
                self.flags.setdefault(name, set()).add(file)
            if file.startswith("tools/"):
                for name, rest in re.findall(r'return \{\s*"(\w+)",(.*?)\n\}', text, re.S):
                    lists = re.findall(r'\{((?:\s*"\w+",?)*\s*)\}', rest)
                    if lists:
                        self.commands.add(name)
                        self.flags_of[name] = set(re.findall(r'"(\w+)"', lists[0]))
        for daemon, main in (("hdps-server", "server/server_main.cc"), ("hdps-worker", "worker/role/worker_main.cc"),
                             ("hdps-scheduler", "scheduler/scheduler_main.cc"),
                             ("hdps-bench", "benchmarks/hdps_bench_main.cc"),
                             ("hdps-load", "benchmarks/serving/hdps_load_main.cc")):
            self.flags_of[daemon] = {flag for flag, where in self.flags.items()
                                     if main in where or any(one.startswith("common/process/") for one in where)}

        if "tools/member/member.cc" in self.code:  # It takes the flags of all three.
            self.commands.add("member")
            self.flags_of["member"] = {"role", "restart"}.union(
                *[self.flags_of[f"hdps-{role}"] for role in ("scheduler", "server", "worker")])

    def read_settings(self):
        """The dotted names of docs/job_file.md, which a test holds against the program's tables."""
        known, section = {}, ""
        page = self.root / "docs" / "job_file.md"
        for line in page.read_text().splitlines() if page.exists() else []:
            heading = re.match(r"### (.+)", line)
            if heading:
                section = re.sub(r"^An? (\w+)$", r"\1", heading[1].replace("[]", "").replace("{}", "").strip())
            row = re.match(r"\| `([\w.]+)` \|", line)
            if row and section:
                of, _, name = row[1].rpartition(".")  # Expert settings stand with their sections.
                known.setdefault(of or section, set()).add(name)
        return known

    def read_words(self):
        """Recipes, layers, optimizers, settings: what a page may name in code."""
        found = set(self.commands)
        for text in (self.code.get("common/job/recipes/recipe_list.def", ""),
                     self.code.get("common/job/layers/layer_list.def", "")):
            found |= set(re.findall(r"^HDPS_\w+\((\w+),", text, re.M))
        for names in self.settings.values():
            found |= {name for name in names if "_" in name}
        for file in self.files:
            optimizer = re.match(r"common/job/optimizers/(\w+)\.h$", file)
            if optimizer and not optimizer[1].startswith("optimizer"):
                found.add(optimizer[1])
        return found

    def read_tests(self):
        found = set()
        for file, text in self.code.items():
            if file.endswith(".cc"):
                found |= {f"{suite}.{name}" for suite, name in
                          re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text, re.M)}
            if file.endswith("_test.py"):
                found.add("end_to_end." + file.rsplit("/", 1)[-1][:-8])
            if file.endswith("CMakeLists.txt"):
                found |= set(re.findall(r"\b(\w+_test)\b", text))
        return found

    def has_file(self, name, page):
        """`name` as a page may write it: from the root, from the page's folder, or the end of a path."""
        name = name.rstrip("/")
        if "." not in name.rsplit("/", 1)[-1] and name in self.folders:
            return True
        beside = str(pathlib.PurePosixPath(page).parent / name).removeprefix("./")
        if {name, beside} & (self.files | self.folders) or name in self.names:
            return True
        if any(file.endswith("/" + name) for file in self.files) or any(
                folder.endswith("/" + name) for folder in self.folders):
            return True
        # A header or a source by its bare name: `step_runner` of step_runner.h .cc.
        return any(re.match(re.escape(one) + r"(_main|_test)?\.\w+$", file) for one in (name, beside) for file in self.files) \
            or any(re.search(r"(^|/)" + re.escape(name) + r"\.\w+$", file) for file in self.files)


def code_of(text):
    """(line, text, whether it stands in a block) of each code span and each line of a code block."""
    for number, line, _ in lines_of(text, True):
        yield number, line, True
    plain = "\n".join(line for _, line, _ in lines_of(text, False))
    for paragraph in re.finditer(r"(?:^(?![|\n]).+\n?)+|^\|.*$", plain, re.M):  # A span may go on in the next line.
        for span in re.finditer(r"(`+)(.+?)\1(?!`)", paragraph[0], re.S):
            number = plain.count("\n", 0, paragraph.start() + span.start()) + 1
            yield number, " ".join(span[2].split()), False


def lines_of(text, inside_blocks):
    """(line, text, whether it is kept): the lines of code blocks, or all others with blocks made empty."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        inside ^= fence
        if inside_blocks and inside and not fence:
            yield number, line, True
        elif not inside_blocks:
            yield number, "" if inside or fence else line, not inside


def check_flags(truth, code):
    for command in re.split(r"\||&&|;", code.split(" #")[0]):
        if OTHER_PROGRAMS.search(command.split("--")[0]):
            continue
        program = re.search(r"\b(hdps-(?:server|worker|scheduler|bench)|hdps (\w+))\b", command.split("--")[0])
        key = program and (program[2] or program[1])
        for flag in re.findall(r"(?<![\w\-])--([a-z][\w\-]*)", command):
            if flag in COMMON_FLAGS or flag.startswith("gtest"):
                continue
            if key in truth.flags_of:
                if flag not in truth.flags_of[key]:
                    yield f"{program[1]} has no flag --{flag}"
            elif not {flag, flag.removeprefix("no-")} & (set(truth.flags) | truth.script_flags):
                yield f"no program or script has a flag --{flag}"


def check_command(truth, code):
    for name in re.findall(r"(?<![\w\-.])hdps ([a-z]\w+)\b(?!\.)", code):
        if name not in truth.commands | {"help", "command"}:
            yield f"there is no command 'hdps {name}'"


def check_settings(truth, code):
    """`train.mode` and --set=train.mode=async; what is called, as optimizer.step(), is a program's own."""
    sections = {section.split(".")[0] for section in truth.settings} - {"The", "An", "A", "Expert", "Settings"}
    for dotted in re.findall(r"(?<![\w/.\-])((?:%s)(?:\.\w+)+)(?!\w|\.\w|\()" % "|".join(sorted(sections)), code):
        parts = dotted.split(".")
        if dotted.endswith((".md", ".sh", ".py", ".json", ".h", ".cc", ".tsv", ".csv", ".gz", ".log", ".onnx", ".onnx.data", ".safetensors")) or (len(parts) == 2 and parts[1] == "_"):
            continue
        known = set().union(*truth.settings.values())
        first = truth.settings.get(parts[0], set())
        if parts[1] not in first or any(not part.isdigit() and part not in known for part in parts[2:]):
            yield f"there is no setting {dotted}"


def check_files(truth, page, code, block):
    words = re.split(r"[\s,;|()\[\]\"'=:]+", code)
    for word in words if block or " " in code else [code]:
        word = word.strip("`").rstrip(".").split("#")[0]
        if not word or word == "examples/s" or re.search(r"[*<>{}$%?\\+@]|(?<![A-Za-z])(?!README|SECURITY|CONTRIBUTING|LICENSE)[A-Z]{3,}(?![a-z])", word) or RUN_FOLDERS.search(word):
            continue
        looks_like_path = "/" in word and word.split("/")[0] in FOLDERS and re.match(r"^[\w.\-/]+$", word)
        if not looks_like_path and not FILE_NAME.match(word):
            continue
        if not truth.has_file(word, page) and (looks_like_path or word not in truth.quoted):
            yield f"there is no file {word}"


def check_tables_of_files(truth, page, text):
    """The first column of a table of files: names without an ending, too."""
    listing = False
    for number, line, _ in lines_of(text, False):
        cells = line.split("|")
        if not line.startswith("|"):
            listing = False
        elif re.match(r"\| *files?\b", line):
            listing = True
        elif listing:
            for name in re.findall(r"`([\w./\-]+)`", cells[1]):
                if name.startswith(".") or name.isupper():  # An ending alone.
                    continue
                if not truth.has_file(name, page):
                    yield number, f"there is no file {name}"


def check_tests(truth, code):
    if "ctest" in code:
        for pattern in re.findall(r"-R '?\"?([\w.|\\\[\]^$()*+]+)", code):
            if pattern in ("name", "NAME"):
                continue
            if not any(re.search(pattern.replace("\\|", "|"), test) for test in truth.tests):
                yield f"no test is called {pattern}"
    for test in re.findall(r"\bend_to_end\.(\w+)", code):
        if f"end_to_end.{test}" not in truth.tests:
            yield f"there is no test end_to_end.{test}"
    for pattern in re.findall(r"--gtest_filter=['\"]?([\w.*]+)", code):
        regex = re.escape(pattern).replace(r"\*", ".*")
        if not any(re.fullmatch(regex, test) or re.search(regex, test) for test in truth.tests):
            yield f"no test matches --gtest_filter={pattern}"


def sentences(text):
    """(line, sentence) of a page, code blocks left out; a row of a table is a sentence."""
    plain = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    number = 1
    for paragraph in re.split(r"(\n\s*\n|\n(?=[|\-#*]))", plain):
        at = number
        number += paragraph.count("\n")
        for sentence in re.split(r"(?<=[.:;?!]) ", " ".join(paragraph.split())):
            yield at, sentence


def check_missing(truth, page, text):
    for number, sentence in sentences(text):
        said = MISSING.search(sentence)
        if not said or any(page.startswith(where) and part in sentence for where, part in ALLOWED):
            continue
        named = {name for span in re.findall(r"`([^`]+)`", sentence) for name in re.findall(r"\w+", span)} & truth.words
        named |= {name for name in FEATURES if re.search(r"\b" + name, sentence, re.I)}
        if named:
            yield number, f"'{said[0]}' beside what is there ({', '.join(sorted(named))}): {sentence[:90]}"


def check_shape(text):
    """Of pages beside code; tests/end_to_end/pages_test.py holds the others, and all links."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        inside ^= line.lstrip().startswith("```")
        if len(line) > LINE_COLUMNS_MAX:
            yield number, f"{len(line)} columns, at most {LINE_COLUMNS_MAX}"
        if line.startswith("|") and not inside:
            longest = max(len(cell.split()) for cell in re.split(r"(?<!\\)\|", line))
            if longest > CELL_WORDS_MAX:
                yield number, f"a cell of {longest} words, at most {CELL_WORDS_MAX}"


def check_questions(truth):
    """Each way of docs/questions.md begins with a link of docs/README.md and takes two links at most."""
    page, front = truth.root / "docs" / "questions.md", truth.root / "docs" / "README.md"
    if not page.exists():
        return
    def targets(file):
        return {(file.parent / link.partition("#")[0]).resolve()
                for link in re.findall(r"\]\(((?!https?:)[^)\s]+)\)", file.read_text()) if not link.startswith("#")}
    offered, count = targets(front), 0
    for number, line in enumerate(page.read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) < 2 or not cells[0].isdigit():
            continue
        count += 1
        way = re.findall(r"\]\(((?!https?:)[^)\s]+)\)", cells[-1])
        files = [(page.parent / link.partition("#")[0]).resolve() for link in way]
        if not way or len(way) > 2:
            yield number, f"a way of {len(way)} links, expected one or two"
        elif files[0] not in offered:
            yield number, f"docs/README.md has no link to {way[0]}"
        elif len(files) == 2 and files[1] not in targets(files[0]):
            yield number, f"{way[0]} has no link to {way[1]}"
    if count < 20:
        yield 1, f"{count} questions, expected twenty"


def check_page(truth, page, raw):
    text = without_comments(raw)
    records = page.startswith("docs/records/")
    for number, code, block in code_of(text):
        for problem in check_flags(truth, code):
            yield number, problem
        for problem in check_command(truth, code):
            yield number, problem
        if not records:  # They tell what was tried, some of it gone.
            for problem in check_settings(truth, code):
                yield number, problem
            for problem in check_files(truth, page, code, block):
                yield number, problem
        for problem in check_tests(truth, code):
            yield number, problem
    if page.endswith("/README.md") and not page.startswith("docs/"):
        yield from check_tables_of_files(truth, page, text)
    yield from check_missing(truth, page, text)
    if page.endswith("/README.md") and not page.startswith("docs/") or page == "CONTRIBUTING.md":
        yield from check_shape(raw)


def check_tree(root):
    truth = Truth(root)
    for name, file in FEATURES.items():
        if file not in truth.files:
            yield f"scripts/dev/pages.py: FEATURES: '{name}' has no file {file}"
    for file in pages_of(root):
        page = str(file.relative_to(root))
        for number, problem in check_page(truth, page, file.read_text()):
            if not any(page == where and problem.endswith(" " + name) for where, name in NOT_OURS):
                yield f"{page}:{number}: {problem}"
    for number, problem in check_questions(truth):
        yield f"docs/questions.md:{number}: {problem}"


def planted_tree():
    """Pages at the root, in docs and beside code, each with one problem."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="hdps_pages_"))
    atexit.register(shutil.rmtree, root)
    for page in ("README.md", "docs/how_to/x.md", "server/README.md"):
        (root / page).parent.mkdir(parents=True, exist_ok=True)
        (root / page).write_text("`no_such.md`\n")
    return root


def self_test(root):
    truth = Truth(root)
    planted = {
        "flag of a command": "`hdps train --jobb=x`", "flag of a daemon": "`hdps-server --wokers=2`",
        "flag of nothing": "Say `--no_such_flag`.", "flag in a block": "```\nhdps predict --servers=2\n```",
        "command": "Run `hdps trian`.", "setting": "Set `train.no_such`.", "setting of a section": "`cluster.mode`",
        "setting by flag": "`hdps train --set=model.hiden=[4]`",
        "nested setting": "`train.early_stop.patients`", "file": "See `common/no_such.h`.",
        "bare file": "See `no_such_thing.md`.", "script": "```sh\nscripts/dev/no_such.sh\n```",
        "test": "`ctest --test-dir build -R no_such_test_at_all`", "end to end test": "`end_to_end.no_such`",
        "span over two lines": "Run `hdps\ntrian --x`.", "missing layer": "The layer `batch_norm` is not built.", "missing by words": "Batch normalization is not supported.",
        "missing in a row": "| a GPU | not yet |", "missing setting": "Clipping (`clip_norm`) is not implemented.",
        "line": "x" * 161, "cell": "| " + "word " * 41 + "|",
    }
    planted["table of files"] = "| file | idea |\n|---|---|\n| `row_gatherer` | x |"
    missed = [what for what, text in planted.items() if not list(check_page(truth, "worker/step/README.md", text + "\n"))]
    good = ("Run `hdps train --job=J --set=train.mode=async`, see `common/job/job.h`, [it](docs/job_file.md#the-whole), "
            "`job_file.md`,\n`OUT/summary.json`, `hdps-server --listen=tcp://HOST:1`, `cmake --build build`; a name not yet taken.\n")
    wrong = [problem for _, problem in check_page(truth, "CONTRIBUTING.md", good)]
    if len(found := list(check_tree(planted_tree()))) != 3 + len(FEATURES):
        missed.append(f"a tree's three pages with a problem each: {[one for one in found if 'FEATURES' not in one]}")
    count = len(planted) + 1
    print(f"pages self-test: {count - len(missed)} of {count} planted problems noticed")
    for line in [*(f"not noticed: {what}" for what in missed), *(f"wrongly noticed: {one}" for one in wrong)]:
        print(line)
    return 1 if missed or wrong else 0


def print_words(root):
    groups = {"users' pages": 0, "records": 0, "beside code": 0}
    for file in pages_of(root):
        page, text = str(file.relative_to(root)), file.read_text()
        cells = [len(cell.split()) for line in text.splitlines() if line.startswith("|") for cell in line.split("|")]
        words = len(text.split())
        group = ("records" if page.startswith("docs/records/") else
                 "users' pages" if page.startswith("docs/") or "/" not in page else "beside code")
        groups[group] += words
        print(f"{words:6} words  {max(cells, default=0):3} in a cell  {max(map(len, text.splitlines()), default=0):4} columns  {page}")
    print(", ".join(f"{name}: {words:,} words" for name, words in groups.items()))
    return 0


def main():
    arguments = [one for one in sys.argv[1:] if not one.startswith("--")]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2]).resolve()
    if "--self-test" in sys.argv:
        return self_test(root)
    if "--words" in sys.argv:
        return print_words(root)
    problems = list(check_tree(root))
    print("\n".join(problems) or "pages: no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
