"""Tests what the programs contain and how they are protected: bill of materials, hardening, systemd units."""
import ctypes
import ctypes.util
import errno
import json
import os
import re
import shutil
import subprocess
import sys

import harness

DEV = harness.ROOT / "scripts" / "dev"
UNITS = harness.ROOT / "scripts" / "systemd"
PROGRAMS = ["hdps", "hdps-scheduler", "hdps-server", "hdps-worker"]
ROLES = ("scheduler", "server", "worker")
PROT_WRITE, PROT_EXEC = 2, 4
# What libseccomp names so.
ALLOW, EPERM, EXACTLY_MASKED = 0x7FFF0000, 0x00050000 | errno.EPERM, 7


def needed(program):
    """The shared libraries that a program names itself."""
    said = harness.run(["readelf", "--wide", "--dynamic", harness.program(program)]).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))


class Supply(harness.Case):
    def test_every_library_is_in_the_bill_of_materials(self):
        """With its package, version and bytes; a program's library that is not in it is noticed."""
        said = harness.run([sys.executable, DEV / "sbom.py", f"--build={harness.BIN.parent}",
                            f"--out={self.out('bill.json')}"]).stdout
        bill = json.loads(self.out("bill.json").read_text())
        self.assertEqual(bill["spdxVersion"], "SPDX-2.3")
        ids = {e["SPDXID"] for e in [*bill["packages"], *bill["files"]]} | {"SPDXRef-DOCUMENT"}
        self.assertEqual(len(ids), len(bill["packages"]) + len(bill["files"]) + 1, "each has its own id")
        for relation in bill["relationships"]:
            self.assertIn(relation["spdxElementId"], ids)
            self.assertIn(relation["relatedSpdxElement"], ids)
        kept = {r["relatedSpdxElement"] for r in bill["relationships"] if r["relationshipType"] == "CONTAINS"}
        self.assertEqual(kept, {f["SPDXID"] for f in bill["files"]}, "each library is of a package")

        def missing(files):
            listed = {os.path.basename(f["fileName"]) for f in files}
            return {name for program in PROGRAMS for name in needed(program)} - listed

        self.assertEqual(missing(bill["files"]), set())
        self.assertEqual(missing([f for f in bill["files"] if "libzmq" not in f["fileName"]]), {"libzmq.so.5"})
        by_name = {p["name"]: p for p in bill["packages"]}
        self.assertEqual(by_name["hdps"]["licenseDeclared"], "Apache-2.0")
        for package, licence in (("libtbb12", "Apache-2.0"), ("libgloo0", "BSD-3-Clause"), ("libjs-dygraphs", "MIT")):
            self.assertEqual(by_name[package]["licenseDeclared"], licence)
        for package in ("nlohmann-json3-dev", "libflatbuffers-dev"):
            self.assertIn(package, by_name, "headers that are compiled count")
        for package in bill["packages"]:
            if package["supplier"] == "Organization: Debian":
                self.assertTrue(package["versionInfo"], package)
        again = self.out("again.json")
        harness.run([sys.executable, DEV / "sbom.py", f"--build={harness.BIN.parent}", f"--out={again}"])
        self.assertEqual(again.read_bytes(), self.out("bill.json").read_bytes())
        harness.figure(said.strip().partition("json: ")[2])

    def test_programs_start_without_cuda(self):
        """cuBLASLt and NCCL are loaded when a device is used: no program names them, wherever it was built."""
        for program in PROGRAMS:
            with self.subTest(program):
                named = {library for library in needed(program) if re.match(r"lib(cublas|nccl|cudart|cuda)", library)}
                self.assertEqual(named, set())
                harness.run(["env", "-i", "PATH=/usr/bin:/bin", harness.program(program), "--version"])

    def test_no_web_server_of_the_metrics_library_is_linked(self):
        """Of prometheus-cpp only core: what serves and pushes there is civetweb, directly or indirectly."""
        weak = re.compile(r"lib(civetweb|prometheus-cpp-(pull|push))")
        for program in PROGRAMS:
            with self.subTest(program):
                loaded = harness.run(["ldd", harness.program(program)]).stdout
                self.assertIn("libprometheus-cpp-core", loaded)
                self.assertEqual([line for line in loaded.splitlines() if weak.search(line)], [])

    def test_layers_that_compute_or_keep_link_no_network(self):
        """Kernels and rows are linked whole, by themselves: without ZeroMQ, libsodium and what runs processes."""
        for layer in ("hdps_kernels", "hdps_embedding"):
            with self.subTest(layer):
                said = harness.run(["nm", "--dynamic", "--undefined-only", harness.program(f"{layer}_link_test")]).stdout
                self.assertNotRegex(said, r"\b(zmq_|sodium_|crypto_)|6gflags")
                self.assertEqual({name for name in needed(f"{layer}_link_test") if re.match("lib(zmq|sodium)", name)}, set())

    def test_programs_are_hardened(self):
        said = harness.run([sys.executable, DEV / "hardened.py", *map(harness.program, PROGRAMS)]).stdout
        harness.figure(said.strip())

    def test_a_protection_that_is_missing_is_noticed(self):
        harness.figure(harness.run([sys.executable, DEV / "hardened.py", "--self-test"]).stdout.strip())

    def test_no_file_names_the_folder_it_was_built_in(self):
        for program in PROGRAMS:
            content = (harness.BIN / program).read_bytes()
            self.assertNotIn(f"{harness.ROOT}/common/".encode(), content, program)


def unit_text(role):
    return (UNITS / f"hdps-{role}@.service").read_text()


def system_calls(group):
    """The names of a group of system calls, as systemd expands it."""
    names = set()
    for line in harness.run(["systemd-analyze", "syscall-filter", group]).stdout.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@"):
            names |= system_calls(word)
        elif word and not word.startswith("#"):
            names.add(word)
    return names


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("how", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def confine(allowed, deny_write_execute):
    """What the unit's SystemCallFilter and MemoryDenyWriteExecute do; for a child before it executes."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    library.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint,
                                               ctypes.POINTER(Comparison)]

    def add(filter_, action, name, *comparisons):
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            library.seccomp_rule_add_array(filter_, action, number, len(comparisons),
                                           (Comparison * max(1, len(comparisons)))(*comparisons))

    if deny_write_execute:
        denied = library.seccomp_init(ALLOW)
        both = PROT_WRITE | PROT_EXEC
        add(denied, EPERM, "mmap", Comparison(2, EXACTLY_MASKED, both, both))
        for name in ("mprotect", "pkey_mprotect"):
            add(denied, EPERM, name, Comparison(2, EXACTLY_MASKED, PROT_EXEC, PROT_EXEC))
        assert library.seccomp_load(denied) == 0
    only = library.seccomp_init(EPERM)
    for name in allowed:
        add(only, ALLOW, name)
    assert library.seccomp_load(only) == 0


class SystemdUnits(harness.DaemonsCase):
    def test_units_are_sound(self):
        """What systemd itself objects to, where it is there; and that variables of the page are flags."""
        flags = {}
        for role in ROLES:
            unit = unit_text(role)
            said = harness.run([harness.program(f"hdps-{role}"), "--help"]).stdout
            flags[role] = set(re.findall(r"^  --(\w+)", said, re.MULTILINE))
            self.assertIn(f"\nExecStart=/opt/hdps/bin/hdps-{role}\n", unit)
            for line in ("Restart=on-failure", "RestartPreventExitStatus=2", "StartLimitIntervalSec=60",
                         "StartLimitBurst=5", "EnvironmentFile=/etc/hdps/%i.conf",
                         f"EnvironmentFile=-/etc/hdps/%i.{role}.conf", "User=hdps", "NoNewPrivileges=yes",
                         "CapabilityBoundingSet=", "ProtectSystem=strict", "PrivateTmp=yes",
                         "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
                         "SystemCallFilter=@system-service"):
                self.assertIn(f"\n{line}\n", unit)
            # A worker makes code while it runs, and may have a GPU.
            for line in ("MemoryDenyWriteExecute=yes", "PrivateDevices=yes"):
                self.assertEqual(f"\n{line}\n" in unit, role != "worker", role)
            copy = self.out(f"hdps-{role}@.service")
            copy.write_text(unit.replace("/opt/hdps/bin", str(harness.BIN)))
            if shutil.which("systemd-analyze"):
                checked = harness.run(["systemd-analyze", "verify", "--man=no", copy])
                self.assertNotIn(copy.name, checked.stderr)
                rated = harness.run(["systemd-analyze", "security", "--offline=true", "--threshold=25", copy])
                harness.figure(f"hdps-{role}@.service: {rated.stdout.strip().splitlines()[-1]}")
        page = (harness.ROOT / "docs" / "how_to" / "several_machines.md").read_text()
        common, scheduler, server = re.findall(r"```ini\n(.*?)```", page, re.S)
        for text, roles in ((common, ("server", "worker")), (scheduler, ("scheduler",)), (server, ("server",))):
            for variable in re.findall(r"^HDPS_(\w+)=", text, re.MULTILINE):
                for role in roles:
                    self.assertIn(variable.lower(), flags[role], role)

    def train_confined(self, allowed, out, write_execute_denied):
        """The census job, each role under its unit's limits of system calls; its summary, or None."""
        self.kill_all()
        self.running, quick = [], "--set=train.epochs=1"
        address = self.out("address")
        address.unlink(missing_ok=True)
        for role in ROLES:
            place = ([f"--out={out}", "--listen=tcp://127.0.0.1:0", f"--address_file={address}"]
                     if role == "scheduler" else [f"--scheduler={address.read_text().strip()}"])
            denied = role in write_execute_denied
            self.running.append(subprocess.Popen(
                [harness.program(f"hdps-{role}"), f"--job={harness.CENSUS}", quick, *place], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                preexec_fn=lambda denied=denied: confine(allowed, denied)))
            if role == "scheduler":
                harness.wait_until(address.exists, 30, "the scheduler's address")
                harness.wait_until(address.read_text, 30, "the scheduler's address")
        said = [p.communicate(timeout=120)[0] for p in reversed(self.running)]
        self.assertEqual([p.returncode for p in self.running], [0, 0, 0], "\n".join(said)[-3000:])
        return harness.summary_of(out)

    def test_a_job_trains_within_the_limits_of_the_units(self):
        """Calls that systemd would refuse are refused here too; with the digest of a free run."""
        if not shutil.which("systemd-analyze") or not ctypes.util.find_library("seccomp"):
            self.skipTest("no systemd-analyze or libseccomp here")
        allowed = system_calls("@system-service")
        denied = [role for role in ROLES if "MemoryDenyWriteExecute=yes" in unit_text(role)]
        confined = self.train_confined(allowed, self.out("confined"), denied)
        free = harness.train(harness.CENSUS, self.out("free"), sets={"train.epochs": 1})
        self.assertEqual(confined["digest"], free["digest"])
        # The limits are there: without threads nobody gets far.
        with self.assertRaises(AssertionError):
            self.train_confined(allowed - {"clone", "clone3"}, self.out("threadless"), denied)
        harness.figure(f"census under the units' limits: {len(allowed)} system calls, no code written by "
                       f"{' and '.join(denied)}: same digest")


if __name__ == "__main__":
    harness.main()
