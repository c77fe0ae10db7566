#!/usr/bin/env python3
"""Writes a software bill of materials of the built programs in SPDX 2.3 (JSON).

usage: scripts/dev/sbom.py [--build=build] [--out=build/hdps.spdx.json]

It lists the packages whose shared libraries the programs load, directly or indirectly, whose static
libraries were linked, and whose headers or texts are in the programs: each with version, license and, for a shared
library, the checksums of its file. Files that Debian's package database does not know are named after
their library. The same build gives the same bytes.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ["hdps", "hdps-scheduler", "hdps-server", "hdps-worker", "hdps-bench"]
# Names of licenses in Debian's copyright files, and in SPDX.
SPDX = {"apache": "Apache-2.0", "apache-2": "Apache-2.0", "apache-2.0": "Apache-2.0",
        "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "bsl-1.0": "BSL-1.0", "boost-1.0": "BSL-1.0", "expat": "MIT", "mit": "MIT", "isc": "ISC", "zlib": "Zlib",
        "gpl-2": "GPL-2.0-only", "gpl-2+": "GPL-2.0-or-later", "gpl-3+": "GPL-3.0-or-later",
        "lgpl-2.1": "LGPL-2.1-only", "lgpl-2.1+": "LGPL-2.1-or-later", "lgpl-3": "LGPL-3.0-only",
        "lgpl-3+": "LGPL-3.0-or-later", "lgpl-2+": "LGPL-2.0-or-later"}
# Copyright files in free form, recognized by one of their sentences.
SENTENCES = [("GCC Runtime Library Exception", "GPL-3.0-or-later WITH GCC-exception-3.1"),
             ("is MIT-licenced:", "MIT"),
             ("version 2.1 of the License, or (at your option) any later version", "LGPL-2.1-or-later")]
NVIDIA = "LicenseRef-NVIDIA-CUDA-EULA"


def told_by(*command):
    """Returns the output of a command; nothing if it does not exist or fails."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False, cwd=ROOT).stdout
    except FileNotFoundError:
        return ""


def loaded_libraries(programs):
    """Maps the name of each shared library of the programs to the file that the loader finds."""
    found = {}
    for program in programs:
        for line in told_by("ldd", program).splitlines():
            name, arrow, place = line.strip().partition(" => ")
            if arrow and place.startswith("not found"):
                sys.exit(f"sbom.py: error: {program} loads {name}, which is not on this machine")
            if arrow or name.startswith("/"):
                path = (place if arrow else name).split(" ")[0]
                found[os.path.basename(name.split(" ")[0])] = pathlib.Path(path)
    return found


def linked_and_compiled(build, programs):
    """Returns the external static libraries, and the system's headers and texts that are in the programs' objects."""
    targets = ["bin/" + p.name for p in programs]
    inputs = told_by("ninja", "-C", build, "-t", "inputs", *targets).split()
    archives = set()
    for command in told_by("ninja", "-C", build, "-t", "commands", *targets).splitlines():
        archives.update(w for w in command.split() if w.startswith("/") and w.endswith(".a"))
    objects = [i for i in inputs if i.endswith(".o")]
    # A compiler's cache may have made paths relative to the build's folder.
    named = set(re.findall(r"^\s+(\S+)$", told_by("ninja", "-C", build, "-t", "deps", *objects), re.M))
    headers = {os.path.normpath(build.absolute() / path) for path in named}
    headers.update(path for path in inputs if path.startswith("/usr/share/"))  # The page's library of charts.
    return sorted(archives), sorted(path for path in headers if path.startswith("/usr/"))


def owners(paths):
    """Maps each path to its Debian package; paths without one are left out."""
    # Debian's database names files of /lib below / or /usr; both are the same folder.
    asked = {}
    for path in paths:
        real = os.path.realpath(path)
        for name in {str(path), real}:
            for spelt in (name, name[4:] if name.startswith("/usr/lib") else "/usr" + name):
                asked.setdefault(spelt, set()).add(str(path))
    found = {}
    for line in told_by("dpkg", "-S", *asked).splitlines():
        package, _, path = line.rpartition(": ")
        for original in asked.get(path, ()):
            found[original] = package.split(",")[0]
    return found


def licence(package):
    """Returns (SPDX expression or NOASSERTION, names of all licenses in the copyright file)."""
    path = pathlib.Path("/usr/share/doc") / package.split(":")[0] / "copyright"
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "NOASSERTION", []
    for sentence, expression in SENTENCES:
        if "Format:" not in text[:2000] and sentence.lower() in " ".join(text.split()).lower():
            return expression, [expression]
    names = []
    for stanza in re.split(r"\n\s*\n", text):
        files = re.search(r"^Files:\s*(.*)", stanza, re.M)
        named = re.search(r"^Licen[cs]e:[ \t]*(.+)$", stanza, re.M)
        if files and named and not files[1].startswith("debian"):
            names.append(named[1].strip())
    if not names:
        return "NOASSERTION", []
    parts = re.split(r"\s+(or|and)\s+", names[0], flags=re.I)
    known = [p.upper() if p.lower() in ("or", "and") else SPDX.get(p.strip(" ,").lower()) for p in parts]
    return (" ".join(known) if all(known) else "NOASSERTION"), sorted(set(names))


def spdx_id(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", text)


def debian_package(name):
    """Makes the entry of an installed package."""
    version, arch, home = (told_by("dpkg-query", "-W", "-f=${Version}\t${Architecture}\t${Homepage}",
                                   name).split("\t") + ["", "", ""])[:3]
    expression, names = licence(name)
    plain = name.split(":")[0]
    entry = {"SPDXID": spdx_id("Package-" + plain), "name": plain, "versionInfo": version,
             "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
             "licenseConcluded": "NOASSERTION", "licenseDeclared": expression, "copyrightText": "NOASSERTION",
             "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                               "referenceLocator": f"pkg:deb/debian/{plain}@{version}?arch={arch}"}]}
    if home:
        entry["homepage"] = home
    if names:
        entry["licenseComments"] = "Named in its copyright file: " + ", ".join(names)
    return entry


def other_package(path):
    """Makes the entry of a library, or of a folder of headers, without a Debian package."""
    real = pathlib.Path(os.path.realpath(path))
    name = re.sub(r"^lib|\.(so|a)(\.[\d.]+)?$", "", real.name)
    nvidia = re.match(r"cu|nccl|nvidia|nv", name) is not None
    if real.suffix in (".h", ".hpp", ".cuh", "") and "cuda" in str(real):
        name, nvidia = "cuda-headers", True
    version = re.search(r"\.so\.([\d.]+)$", real.name)
    cuda = re.search(r"cuda-([\d.]+)", str(real))
    return {"SPDXID": spdx_id("Package-" + name), "name": name,
            "versionInfo": version[1] if version and "." in version[1] else cuda[1] if cuda else "NOASSERTION",
            "supplier": "Organization: NVIDIA" if nvidia else "NOASSERTION",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": ("BSD-3-Clause" if "nccl" in name else NVIDIA if nvidia else "NOASSERTION"),
            "copyrightText": "NOASSERTION"}


def file_entry(name, path):
    content = path.read_bytes()
    return {"SPDXID": spdx_id("File-" + name), "fileName": "./lib/" + name, "fileTypes": ["BINARY"],
            "checksums": [{"algorithm": a, "checksumValue": hashlib.new(a.lower(), content).hexdigest()}
                          for a in ("SHA1", "SHA256")],
            "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"}


def document(build):
    programs = [build / "bin" / name for name in PROGRAMS if (build / "bin" / name).exists()]
    if not programs:
        sys.exit(f"sbom.py: error: no programs in {build}/bin; build first (scripts/build.sh)")
    libraries = loaded_libraries(programs)
    archives, headers = linked_and_compiled(build, programs)
    known = owners([*libraries.values(), *archives, *headers])
    packages, files, relations = {}, [], []

    def relate(one, kind, other):
        entry = {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
        if entry not in relations:
            relations.append(entry)

    version = re.search(r"project\(hdps VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    relate("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Package-hdps")
    uses = ([(path, "DYNAMIC_LINK", name) for name, path in sorted(libraries.items())]
            + [(path, "STATIC_LINK", "") for path in archives]
            + [(path, "DEPENDS_ON", "") for path in headers])
    for path, kind, name in uses:
        owner = known.get(str(path))
        entry = debian_package(owner) if owner and owner not in packages else None
        if not owner:
            entry = other_package(path)
            owner = entry["name"]
        packages.setdefault(owner, entry)
        relate("SPDXRef-Package-hdps", kind, packages[owner]["SPDXID"])
        if name:
            files.append(file_entry(name, path))
            relate(packages[owner]["SPDXID"], "CONTAINS", files[-1]["SPDXID"])
    commit = told_by("git", "rev-parse", "HEAD").strip() or "NOASSERTION"
    hdps = {"SPDXID": "SPDXRef-Package-hdps", "name": "hdps", "versionInfo": version, "sourceInfo": f"commit {commit}",
            "supplier": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION"}
    body = {"packages": [hdps, *sorted(packages.values(), key=lambda p: p["name"])], "files": files,
            "relationships": relations, "hasExtractedLicensingInfos": [
                {"licenseId": NVIDIA, "name": "NVIDIA CUDA Toolkit End User License Agreement",
                 "extractedText": "See https://docs.nvidia.com/cuda/eula/index.html"}]}
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or told_by("git", "log", "-1", "--format=%ct").strip() or "0"
    created = told_by("date", "-u", "-d", f"@{int(seconds)}", "+%Y-%m-%dT%H:%M:%SZ").strip()
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"hdps-{version}", "documentNamespace": f"https://spdx.org/spdxdocs/hdps-{version}-{digest[:32]}",
            "creationInfo": {"created": created, "creators": ["Tool: hdps scripts/dev/sbom.py"]},
            "comment": "Checksums are of the libraries as the build found them; those in a bundle are stripped.",
            **body}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--out")
    arguments = parser.parse_args()
    build = pathlib.Path(arguments.build).resolve()
    out = pathlib.Path(arguments.out or build / "hdps.spdx.json")
    made = document(build)
    out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    told = sum(p["licenseDeclared"] != "NOASSERTION" for p in made["packages"])
    print(f"sbom: {out}: {len(made['packages'])} packages, {told} with their licence, "
          f"{len(made['files'])} shared libraries")


if __name__ == "__main__":
    main()
