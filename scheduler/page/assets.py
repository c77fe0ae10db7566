#!/usr/bin/env python3
"""Writes a .cc with the texts of the page and of the report, as page_assets.h names them.

usage: assets.py FOLDER_OF_DYGRAPHS OUT.cc
"""
import base64
import hashlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent


def own(*names):
    """Our own files behind each other, without indentation and lines that are comments only."""
    lines = [line.strip() for name in names for line in (HERE / name).read_text().split("\n")]
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


def library(folder, name):
    """A file of dygraphs without the address of its map, which nobody serves."""
    return re.sub(r"(//|/\*)# sourceMappingURL=\S+( \*/|\*/)?\n?", "", (folder / name).read_text())


def texts(folder):
    """The texts by name. `folder`: where dygraph.min.js is."""
    license_text = "/*\n" + (HERE / "dygraphs.LICENSE").read_text() + "*/\n"
    found = {
        "kPageHtml": (HERE / "page.html").read_text(),
        "kPageCss": library(folder, "dygraph.min.css") + "\n" + (HERE / "page.css").read_text(),
        "kDygraphs": license_text + library(folder, "dygraph.min.js"),
        "kPageScript": own("charts.js", "panels.js", "live.js"),
        "kReportScript": own("charts.js", "panels.js", "report.js"),
        "kPageIcon": (HERE / "icon.svg").read_text(),
    }
    for name in ("kDygraphs", "kReportScript"):
        if "</script" in found[name] or "<!--" in found[name]:
            raise SystemExit(f"assets.py: {name} has what ends a script in HTML")
    digests = (hashlib.sha256(found[name].encode()).digest() for name in ("kDygraphs", "kReportScript"))
    found["kReportScriptHashes"] = " ".join(f"'sha256-{base64.b64encode(one).decode()}'" for one in digests)
    return found


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    lines = ["// Written by assets.py.", '#include "scheduler/page/page_assets.h"', "namespace hdps {"]
    for name, text in texts(folder).items():
        data = text.encode()
        lines.append(f"static const unsigned char {name}Bytes[] = {{")
        lines += [",".join(map(str, data[at:at + 40])) + "," for at in range(0, len(data), 40)]
        lines.append("};")
        lines.append(f"const std::string_view {name}(reinterpret_cast<const char*>({name}Bytes), {len(data)});")
    lines.append("}  // namespace hdps")
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
