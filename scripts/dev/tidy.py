#!/usr/bin/env python3
"""Checks what a compiler cannot: the order of layers, the platform interfaces, and sizes.

usage: scripts/dev/tidy.py [ROOT]          prints the problems, exits 1 if there are any
       scripts/dev/tidy.py --self-test     plants one problem of each kind and sees it noticed
"""
import atexit
import pathlib
import re
import shutil
import sys
import tempfile

RANK = {"common": 0, "kernels": 1, "embedding": 2, "server": 3, "worker": 3, "scheduler": 3,
        "tools": 4, "python": 5, "benchmarks": 5, "tests": 6}
# The rooms of each layer, from the lowest: a room may include itself and those before it.
ROOMS = {
    "common": ["base", "platform", "metrics", "telemetry", "net", "http", "protocol", "election", "parallel", "job", "planning",
               "process"],
    "kernels": ["tasks", "keys", "host", "products", "cuda"],
    "embedding": ["memory", "disk", "snapshot"],
    "server": ["watch", "record", "staleness", "places", "step", "groups"],
    "worker": ["data", "model", "collective", "exchange", "parallel", "cache", "dense", "step", "role",
               "outside"],
    "scheduler": ["page", "election", "balance", "members", "plan", "why", "report", "state", "picture", "phases"],
    "tools": ["inputs", "scoring", "export", "plan", "synthetic", "prepare", "report", "checkpoints", "doctor", "why",
              "tables", "replay", "serve", "deploy", "member"],
}
# Rooms with a file per record, which may grow beyond the limit of files.
RECORDS = {"common/job/layers", "common/job/optimizers", "common/job/recipes", "worker/model/layers",
           "tools/export/onnx/layers"}
# Folders that only their parent folder and tests may include.
PRIVATE = ["common/net/shared/", "common/net/zmq/", "common/job/text/", "worker/data/formats/"]
# Calls that reach outside the process, and the only files that may make them.
DOORS = [
    (r"steady_clock|system_clock|sleep_for|sleep_until|clock_gettime",
     {"common/platform/monotonic_clock.cc"}),
    (r"\bwait_for\(|\bwait_until\(",
     {"common/net/inproc_transport.cc", "common/platform/threads/pause.cc"}),
    (r"random_device|\bs?rand\(|getrandom", {"common/platform/random.cc"}),
    (r"std::j?thread\b|pthread_create", {"common/platform/executor.cc"}),
    (r"[<\"]tbb/|oneapi/tbb", {"common/platform/tbb_executor.cc"}),
    (r"[<\"]zmq(_addon)?\.h", {
        "common/net/zmq_transport.cc", "common/net/keys/curve.cc",
        *(f"common/net/zmq/{idea}" for idea in (
            "authenticator.h", "data_link.h", "data_sessions.h", "data_session.h", "links.h", "listeners.h", "parts.h", "socket_settings.h",
            "watched_socket.h"))}),
    (r"[<\"](sodium\.h|openssl/)", {"common/net/zmq/frame_cipher.cc", "common/net/peer_name.cc"}),
    (r"\bfopen\(|std::[io]?fstream|::open\(|::rename\(",
     {"common/platform/posix_file_system.cc"}),
    (r"\bf?printf\(|\bv?fprintf\(|\bf?puts\(|\bputchar\(|std::c(out|err|log)\b",
     {"common/process/terminal.cc", "scheduler/report/console_output.cc"}),
    (r"\bmmap\(", {"common/net/shared/shared_memory.cc", "common/platform/memory_full.cc",
                   "common/platform/posix_file_system.cc", "embedding/memory/page_memory.cc"}),
    (r"memfd_create|shm_open", {"common/net/shared/shared_memory.cc"}),
    (r"pidfd_open", {"common/platform/process_watch.cc"}),
    (r"posix_spawn|\bwaitpid\(|\bexecv|\bfork\(", {
        "common/platform/memory_full.cc", "common/platform/programs/child_process.cc",
        "common/platform/programs/posix_programs.cc"}),
    (r"mkdtemp", {"common/platform/folders/temporary_folder.cc"}),
    (r"setpriority", {"common/platform/threads/thread_priority.cc"}),
    (r"\bgetenv\(", {"common/process/command_line.cc", "kernels/vector_width.cc"}),
    (r"[<\"]flatbuffers/|_generated\.h", {"common/protocol/message_codec.h", "tests/sim/extremes/extreme_messages.cc"}),
    (r"[<\"]prometheus/", {"common/telemetry/prometheus_text.cc"}),
    (r"[<\"]microhttpd\.h", {
        f"common/http/{idea}.cc" for idea in ("late_answers", "micro_server", "request_headers", "visitor_rules")}),
    (r"[<\"]simdjson\.h", {"tools/serve/requests/json_body.h", "worker/data/records/json_cells.cc"}),
    (r"<curl/", {"common/election/etcd_client.cc"}),
    (r"[<\"]rocksdb/", {"embedding/disk/disk_store.cc"}),
    (r"[<\"]gloo/", {"worker/collective/gloo_transport.cc"}),
    (r"[<\"]nccl\.h", {"worker/collective/nccl_transport.cc"}),
    (r"dnnl\.h|omp_set", {"kernels/products/bf16_gemm.cc", "kernels/products/cpu_gemm.cc",
                       "kernels/products/product_library.cc"}),
    (r"[<\"]z(lib|std)\.h", {"worker/data/compressed_file.cc"}),
    (r"[<\"]isa-l|\.pb\.h\"", {"scheduler/report/event_records.cc", "worker/data/records/example_cells.cc",
                                         "worker/data/records/tfrecord_files.cc"}),
    (r"<onnx/|<google/protobuf/", {"tools/export/onnx/onnx_graph.cc"}),
    (r"[<\"]faiss/", {"tools/export/vectors/faiss_index.cc"}),
]
# Libraries that no header may include, because every file that includes it would depend on them.
NOT_IN_HEADERS = r"[<\"](cuda|nlohmann|gflags)[/_.a-z]*"
VAGUE_NAMES = re.compile(r"(^|_)(utils?|helpers?|manager|misc|stuff)(_|\.|$)")
FILE_LINES_MAX, FUNCTION_LINES_MAX, COLUMNS_MAX, FOLDER_FILES_MAX = 400, 70, 100, 30
SOURCES = (".h", ".cc", ".cu", ".cuh")


def check_include(path, to):
    """Checks layers, rooms of one layer, and private folders."""
    folder, to_folder = path.split("/")[0], to.split("/")[0]
    if to_folder not in RANK:
        return
    if to_folder != folder and RANK[to_folder] >= RANK.get(folder, 9):
        yield f"{folder} may not include {to_folder}"
    if to_folder == folder and folder in ROOMS:
        order = ROOMS[folder]
        room, to_room = path.split("/")[1], to.split("/")[1]
        if room in order and to_room in order and order.index(to_room) > order.index(room):
            yield f"{folder}/{room} may not include {folder}/{to_room}"
    for private in PRIVATE:
        home = private.rsplit("/", 2)[0] + "/"
        if to.startswith(private) and not path.startswith(home) and folder != "tests":
            yield f"{private} is private to {home}"


def check_line(path, folder, line):
    if len(line) > COLUMNS_MAX:
        yield f"{len(line)} columns, at most {COLUMNS_MAX}"
    include = re.match(r'\s*#include "([\w/.]+)"', line)
    if include:
        yield from check_include(path, include[1])
    if RANK.get(folder, 9) > 4:
        return
    code = line.split("//")[0]
    for call, homes in DOORS:
        if path not in homes and re.search(call, code):
            yield f"'{re.search(call, code)[0]}' belongs in {', '.join(sorted(homes))}"
    if path.endswith(".h") and re.search(r"#include " + NOT_IN_HEADERS, code):
        yield "this library may not be included by a header"


def check_functions(lines):
    """Checks lengths: a body opens at a '{' at the end of a line indented by 0-2 and closes at that indent."""
    start = None
    for n, line in enumerate(lines, 1):
        if start is None and re.match(r"(?: {0,2})\S.*\)(?: \w+)* \{$", line):
            start, indent = n, len(line) - len(line.lstrip())
        elif start and line.rstrip() in (" " * indent + "}", " " * indent + "};"):
            if n - start + 1 > FUNCTION_LINES_MAX:
                yield start, f"function of {n - start + 1} lines, at most {FUNCTION_LINES_MAX}"
            start = None


def check(path, text):
    """Yields (line, problem) for one file; `path` is relative to the root."""
    folder = path.split("/")[0]
    lines = text.split("\n")
    if VAGUE_NAMES.search(path.split("/")[-1]):
        yield 1, "name the file after its idea"
    if not lines[0].startswith("//"):
        yield 1, "a file opens with one sentence of purpose"
    if path.endswith(".h") and "#pragma once" not in text:
        yield 1, "a header has #pragma once"
    for n, line in enumerate(lines, 1):
        for problem in check_line(path, folder, line):
            yield n, problem
    if len(lines) - 1 > FILE_LINES_MAX:
        yield 1, f"{len(lines) - 1} lines, at most {FILE_LINES_MAX}: what second idea is in here?"
    yield from check_functions(lines)


def check_tree(root):
    for folder in RANK:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SOURCES:
                path = str(file.relative_to(root))
                for n, problem in check(path, file.read_text()):
                    yield f"{path}:{n}: {problem}"
    for folder in sorted({file.parent for f in RANK for file in (root / f).rglob("*")}):
        name = str(folder.relative_to(root))
        count = sum(file.suffix in SOURCES for file in folder.iterdir())
        if count > FOLDER_FILES_MAX and name not in RECORDS:
            yield f"{name}/: {count} files, at most {FOLDER_FILES_MAX}: which ideas are in here?"
        layer, _, room = name.partition("/")
        if count and room and "/" not in room and layer in ROOMS and room not in ROOMS[layer]:
            yield f"{name}/: which rooms of {layer} may it include? ROOMS in scripts/dev/tidy.py does not say"
    for folder in [f for f in RANK if f not in ("benchmarks",)]:
        if (root / folder).is_dir() and not (root / folder / "README.md").exists():
            yield f"{folder}/: no README.md"


def planted_tree(paths, count, text):
    """Makes a folder with `count` files of each pattern."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="hdps_tidy_"))
    atexit.register(shutil.rmtree, root)
    for pattern in paths:
        (root / pattern).parent.mkdir(parents=True)
        for number in range(count):
            (root / (pattern % number)).write_text(text)
    return root


def self_test():
    head = "// Purpose.\n"
    planted = {
        "layer": ("kernels/x.cc", head + '#include "server/shard.h"\n'),
        **{f"room of {layer}": (f"{layer}/{rooms[0]}/x.cc", head + f'#include "{layer}/{rooms[-1]}/x.h"\n')
           for layer, rooms in ROOMS.items()},
        "private": ("server/x.cc", head + '#include "common/net/shared/shared_arena.h"\n'),
        "wait": ("server/x.cc", head + "changed.wait_for(lock, ms);\n"),
        "roles meet": ("server/x.cc", head + '#include "worker/data/batch.h"\n'),
        "clock": ("server/x.cc", head + "auto t = std::chrono::steady_clock::now();\n"),
        "terminal": ("tools/x.cc", head + 'std::printf("%s", name);\n'),
        "environment": ("common/job/job.cc", head + 'getenv("HOME");\n'),
        "library": ("server/x.cc", head + "#include <zmq.hpp>\n".replace("hpp", "h")),
        "header": ("common/x.h", head + "#pragma once\n#include <nlohmann/json.hpp>\n"),
        "columns": ("common/x.cc", head + "x" * 101 + "\n"),
        "file size": ("common/x.cc", head + "int x;\n" * 401),
        "function size": ("common/x.cc", head + "void F() {\n" + "  f();\n" * 71 + "}\n"),
        "name": ("common/string_utils.cc", head),
        "purpose": ("common/x.cc", "#include <vector>\n"),
        "pragma": ("common/x.h", head),
    }
    missed = [what for what, (path, text) in planted.items() if not list(check(path, text))]
    clean = list(check("common/x.cc", head + "int x;\n"))
    trees = {
        "full folder": (["common/net/x%d.cc"], FOLDER_FILES_MAX + 1, "common/net/: 31 files"),
        "room without a place": (["server/new_room/x%d.cc"], 1, "server/new_room/: which rooms"),
        "records": ([f"{folder}/x%d.cc" for folder in RECORDS], FOLDER_FILES_MAX + 1, ""),
    }
    for what, (paths, count, wanted) in trees.items():
        problems = list(check_tree(planted_tree(paths, count, head)))
        found = [problem for problem in problems if not problem.endswith("no README.md")]
        if wanted and not any(problem.startswith(wanted) for problem in found):
            missed.append(what)
        clean += [problem for problem in found if not wanted or not problem.startswith(wanted)]
    print(f"tidy self-test: {len(planted) + 2 - len(missed)} of {len(planted) + 2} planted problems noticed")
    for line in [*(f"not noticed: {what}" for what in missed), *(f"wrongly noticed: {one}" for one in clean)]:
        print(line)
    return 1 if missed or clean else 0


def main():
    if "--self-test" in sys.argv:
        return self_test()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    problems = list(check_tree(root))
    print("\n".join(problems) or "tidy: no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
