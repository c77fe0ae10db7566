#!/usr/bin/env python3
"""Checks the packages that scripts/dev/package.sh made: lintian, and an installation in a fresh root.

usage: scripts/dev/package_check.py [--packages=build/packages] [--all]

Needs root, mmdebstrap and a mirror of Debian. In a root made by mmdebstrap, hdps is installed, trains census as the
user of its units, is as small as an image must be, and is purged without a trace. hdps-dev and python3-hdps are
unpacked and used here; --all installs these too in that root, which loads a
compiler, and packs all of them again.
"""
import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "tests" / "end_to_end" / "installed"
CENSUS = "/usr/share/doc/hdps/examples/census/census.json"
IMAGE_MIB_MAX, FIRST_TRAINING_SECONDS_MAX = 200, 60
# What apt and the C library write for themselves, whichever package comes and goes.
OTHERS = ("/var/lib/apt/", "/var/lib/dpkg/", "/var/cache/", "/var/log/", "/etc/ld.so.cache", "/tmp", "/dev", "/proc", "/run",
          "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/subuid-", "/etc/subgid-", "/packages",
          "/var/lib/systemd/deb-systemd")


def fail(text):
    sys.exit(f"package_check.py: error: {text}")


def run(command, **kwargs):
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, **kwargs)
    if done.returncode != 0:
        fail(f"{shlex.join(map(str, command))}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def inside(root, *command, user="root"):
    return run(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8",
                "chroot", f"--userspec={user}", root, *command])


def install(root, *packages):
    inside(root, "apt-get", "install", "-qq", "--no-install-recommends", *packages)


def files_of(root):
    """Every path, and the accounts."""
    paths = set()
    for folder, names, files in os.walk(root):
        for name in names + files:
            path = "/" + str((pathlib.Path(folder) / name).relative_to(root))
            if not path.startswith(OTHERS):
                paths.add(path)
    return paths | {f"account {line}" for line in (root / "etc" / "passwd").read_text().splitlines()}


def mib_of(root):
    inside(root, "apt-get", "clean")
    return int(run(["du", "--summarize", "--block-size=1K", "--exclude=./packages", "--exclude=./var/lib/apt/lists",
                    "--exclude=./tmp", "."], cwd=root).split()[0]) / 1024


def check_lintian(packages):
    """No errors; a package that is spoiled is noticed."""
    run(["lintian", "--allow-root", "--fail-on", "error", *packages])
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        run(["dpkg-deb", "--raw-extract", packages[0], tree])
        next((tree / "usr" / "share" / "doc").glob("*/copyright")).unlink()
        run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, f"{folder}/spoiled.deb"])
        spoiled = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", f"{folder}/spoiled.deb"], capture_output=True)
        if spoiled.returncode == 0:
            fail("lintian does not notice a package without copyright")
    print(f"lintian: no errors in {len(packages)} packages", flush=True)


def check_same_bytes(packages, folder):
    """Packing the same tree again gives the same bytes."""
    run([ROOT / "scripts" / "dev" / "package.sh", folder])
    for package in packages:
        if package.read_bytes() != (folder / package.name).read_bytes():
            fail(f"{package.name} differs when it is packed again")
    print(f"{len(packages)} packages have the same bytes when they are packed again", flush=True)


def check_root(root, packages, everything):
    own = root / "packages"
    run(["mmdebstrap", "--quiet", "--variant=minbase", "bookworm", root])
    own.mkdir()
    for package in packages:
        shutil.copy(package, own)
    inside(root, "apt-get", "update", "-qq")
    before, base = files_of(root), mib_of(root)
    begin = time.monotonic()
    install(root, *(f"/packages/{package.name}" for package in packages if package.name.startswith("hdps_")))
    installed = time.monotonic()
    inside(root, "hdps", "train", f"--job={CENSUS}", "--out=/tmp/run", user="hdps:hdps")
    took, load = time.monotonic() - begin, os.getloadavg()[0] / os.cpu_count()
    print(f"figure: census has trained {took:.0f} s after the first command, of which installing took "
          f"{installed - begin:.0f} s, at {load:.1f} processes a core", flush=True)
    # A machine that does other things meanwhile is as much slower.
    if took > FIRST_TRAINING_SECONDS_MAX * max(1, load):
        fail(f"expected at most {FIRST_TRAINING_SECONDS_MAX} s on an idle machine")
    more = mib_of(root) - base
    print(f"figure: the image has {more:.0f} MiB beside the {base:.0f} MiB of Debian's base", flush=True)
    if more > IMAGE_MIB_MAX:
        fail(f"expected at most {IMAGE_MIB_MAX} MiB")
    if not files_of(root) - before:
        fail("nothing is installed")  # The comparison below would compare nothing.
    purge(root, "hdps")
    left = sorted(files_of(root) ^ before)
    if left:
        fail(f"{len(left)} files are left or lost after the purge: {', '.join(left[:20])}")
    print("removed without a trace", flush=True)
    if everything:
        check_others(root, packages)


def purge(root, *names):
    inside(root, "apt-get", "purge", "-qq", *names)
    inside(root, "apt-get", "autoremove", "--purge", "-qq")


def check_others(root, packages):
    """hdps-dev and python3-hdps need nothing but what they depend on, and leave none of their files."""
    install(root, "cmake", "ninja-build", *(f"/packages/{package.name}" for package in packages))
    shutil.copytree(SOURCE, root / "tmp" / "outside")
    inside(root, "cmake", "-S", "/tmp/outside", "-B", "/tmp/build", "-G", "Ninja")
    inside(root, "ninja", "-C", "/tmp/build", "outside")
    names = [package.name.split("_")[0] for package in packages]
    if "python3-hdps" in names:
        inside(root, "python3", "-c", "import hdps")
    purge(root, *names)
    left = [path for path in root.rglob("*hdps*") if not str(path).startswith((f"{root}/tmp", f"{root}/packages", f"{root}/var"))]
    if left:
        fail(f"left after the purge: {left[:20]}")
    print("hdps-dev and python3-hdps work with what they depend on, and leave nothing", flush=True)


def check_development(packages, folder):
    """A program outside finds hdps-dev by CMake and by pkg-config, and Python finds its module."""
    for package in packages:
        run(["dpkg-deb", "--extract", package, folder / "tree"])
    prefix = folder / "tree" / "usr"
    run(["cmake", "-S", SOURCE, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"])
    run(["ninja", "-C", folder / "build", "outside"])
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = run(["pkg-config", "--cflags", "--libs", "hdps"], env=environment).split()
    run(["g++", "-O1", SOURCE / "outside.cc", "-o", folder / "by_pkg_config", *flags])
    for program in (folder / "build" / "outside", folder / "by_pkg_config"):
        if "steps 3" not in run([program, f"{folder}/tree{CENSUS}", folder / f"run_{program.name}"]):
            fail(f"{program.name} does not train")
    print("programs outside are built by CMake and by pkg-config, and train", flush=True)
    if any(package.name.startswith("python3-hdps") for package in packages):
        run(["/usr/bin/python3", "-c", "import hdps, numpy"],
            env={**os.environ, "PYTHONPATH": str(prefix / "lib" / "python3" / "dist-packages"), "PYTHONDONTWRITEBYTECODE": "1"})
        print("python3 imports hdps", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--packages", type=pathlib.Path, default=ROOT / "build" / "packages", help="where the packages are")
    parser.add_argument("--all", action="store_true", help="also install hdps-dev and python3-hdps in the fresh root")
    arguments = parser.parse_args()
    packages = sorted(arguments.packages.glob("*.deb"))
    if not packages:
        fail(f"no packages in {arguments.packages}; run scripts/dev/package.sh")
    for program in ("lintian", "mmdebstrap"):
        if shutil.which(program) is None:
            fail(f"there is no {program}; run scripts/install_deps.sh --developer")
    if os.geteuid() != 0:
        fail("a root is made by root only; run it as root")
    check_lintian(packages)
    with tempfile.TemporaryDirectory() as folder:
        check_development(packages, pathlib.Path(folder))
    if arguments.all:
        with tempfile.TemporaryDirectory() as folder:
            check_same_bytes(packages, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        root.mkdir(mode=0o755)
        os.chmod(folder, 0o755)  # The user hdps walks through it.
        check_root(root, packages, arguments.all)


if __name__ == "__main__":
    main()
