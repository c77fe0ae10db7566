"""Runs a job on several machines over ssh; scripts/cluster.sh starts it, --help says how.

Each machine has one connection with one local_cluster.sh, which gets a sign of life every second. When
these stop for any reason, the machine's part ends too, so nothing is left running.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import cluster_hosts

ROOT = pathlib.Path(__file__).resolve().parent
CONNECT_SECONDS = 15
CHECK_SECONDS = 60
COPY_SECONDS = 900
# A machine without signs of life for so long ends its part; a silent machine is given up.
SILENCE_SECONDS = 60
# Seconds that parts may take to end after the scheduler; a stuck member is killed after ten.
END_SECONDS = 20
SSH = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}", "-o", "ServerAliveInterval=5", "-o",
       f"ServerAliveCountMax={SILENCE_SECONDS // 5}"]
# Messages of ssh about problems that a person has to solve, not the network.
MISTAKES = ("Host key verification failed", "Permission denied", "Could not resolve", "HOST IDENTIFICATION",
            "Bad configuration option", "No such file or directory")
# Makes a folder that only this user may read, on each machine's own disk.
LOCAL = """old=$(umask); umask 077
local={local}; local=${{local:-/var/tmp/hdps-$(id -u)}}
mkdir -p "$local" && [ -O "$local" ] && [ ! -L "$local" ] || {{ echo "$local belongs to somebody else" >&2; exit 2; }}
chmod 700 "$local"
"""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PASSED = ("--set=", "--threads=", "--expected_rows=", "--record=", "--max_bad_rows=", "--resume=", "--restart=", "--log=",
          "--worker_command=",
          # Read on the first machine.
          "--http=", "--http_names=", "--http_token_file=", "--http_cert=", "--http_key=")
PASSED_FLAGS = ("--insecure", "--insecure-collective", "--workers_come", "--tensorboard")
FILES = ["summary.json", "job_as_run.json", "metrics.jsonl", "tensorboard", "log"]


class Failed(Exception):
    """Ends the run with a message and an exit status."""

    def __init__(self, text, status=3):
        super().__init__(text)
        self.status = status


def shown(text):
    """The text with control characters escaped as in Python."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def say(text):
    print(f"cluster.sh: {shown(text)}", file=sys.stderr, flush=True)


class Machine:
    """One machine of the run, with its connection from `connect` to `close`."""

    def __init__(self, host, ssh, runtime):
        self.host, self.name = host, host.name
        self.socket = os.path.join(runtime, f"ssh_{host.rank}")
        self.ssh = ssh
        self.connection, self.part = None, None

    def connect(self):
        """Opens the connection that everything else goes through; it ends with this program."""
        self.connection = self._start([*self.ssh, *SSH, "-o", "ControlMaster=yes", "-o", f"ControlPath={self.socket}",
                                       self.name, "echo connected; cat >/dev/null"], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
        timer = threading.Timer(2 * CONNECT_SECONDS, self.connection.kill)
        timer.start()
        line = self.connection.stdout.readline()
        timer.cancel()
        if line.strip() == b"connected":
            return
        self.connection.kill()
        said = self.connection.stderr.read().decode(errors="replace").strip().splitlines()
        cause = "; ".join(line.strip() for line in said[-3:] if line.strip("@ \r"))
        mistaken = any(word in "\n".join(said) for word in MISTAKES)
        raise Failed(f"{self.name} cannot be reached: {cause or f'no answer within {2 * CONNECT_SECONDS} s'}",
                     2 if mistaken else 3)

    def _start(self, command, **streams):
        # Not in our process group: a Ctrl-C at the terminal is ours alone.
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **streams)

    def start(self, script, **streams):
        """Starts a shell script on the machine; the caller has to end it."""
        return self._start([*self.ssh, *SSH, "-o", f"ControlPath={self.socket}", "-o", "ControlMaster=no", self.name,
                            f"exec bash -c {shlex.quote(script)}"], **streams)

    def run(self, what, script, feed=None, seconds=CHECK_SECONDS):
        """Returns the output of a script; raises Failed with the machine's name if it fails or takes too long."""
        process = self.start(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            told, said = process.communicate(feed, timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failed(f"{self.name}: {what}: not done after {seconds} s") from None
        if process.returncode:
            raise Failed(f"{self.name}: {what}: {said.decode(errors='replace').strip() or 'failed'}",
                         2 if process.returncode == 2 else 3)
        return told.decode(errors="replace").strip()

    def close(self):
        if self.connection:
            self.connection.kill()
            self.connection.communicate()


class Run:
    """A job on its machines; the first of them leads."""

    def __init__(self, options, hosts, runtime):
        self.options, self.token = options, secrets.token_hex(8)
        self.job, self.out = os.path.abspath(options.job), os.path.abspath(options.out)
        self.machines = [Machine(host, shlex.split(options.ssh), runtime) for host in hosts]
        self.bundle = pathlib.Path(options.bundle or ROOT.parent / "build" / "hdps-bundle.tar.xz")
        self.digest = hashlib.sha256(self.bundle.read_bytes()).hexdigest()[:32]
        self.stops, self.lost, self.shared_here = 0, set(), True

    def everywhere(self, action, machines=None):
        """Calls a function for all machines at once; raises the failure of the first machine that failed."""
        machines = machines or self.machines
        with concurrent.futures.ThreadPoolExecutor(len(machines)) as pool:
            tasks = [pool.submit(action, machine) for machine in machines]
        failures = [task.exception() for task in tasks if task.exception()]
        for failure in failures[1:]:
            if isinstance(failure, Failed):
                say(f"error: {failure}")
        if failures:
            raise failures[0]

    def local(self):
        return LOCAL.format(local=shlex.quote(self.options.local))

    # Before the start.

    def prepare(self):
        digest = hashlib.sha256(pathlib.Path(self.job).read_bytes()).hexdigest()
        self.everywhere(Machine.connect)
        self.everywhere(lambda m: self.check_job(m, digest))
        self.check_out()
        self.everywhere(self.copy_bundle)

    def check_job(self, machine, digest):
        quoted = shlex.quote(self.job)
        told = machine.run("looking for the job",
                           f"[ -f {quoted} ] || echo none; sha256sum <{quoted} 2>/dev/null || true")
        if told.startswith("none"):
            raise Failed(f"{machine.name}: --job: there is no file '{self.job}'; the job and its data have to lie "
                         "under the same path on all machines, on a shared file system or copied", 2)
        if told.split()[0] != digest:
            raise Failed(f"{machine.name}: --job: '{self.job}' is another file there than here", 2)

    def check_out(self):
        """Checks that all machines see the leader's --out, where servers write checkpoints."""
        out, token = shlex.quote(self.out), shlex.quote(f"{self.out}/shared_{self.token}")
        self.machines[0].run("--out", f"mkdir -p {out} && echo {self.token} >{token}")

        def see(machine):
            told = machine.run("--out", f"for _ in $(seq 50); do [ -f {token} ] && cat {token} && exit 0; "
                               "sleep 0.1; done")
            if told != self.token:
                raise Failed(f"{machine.name}: --out: '{self.out}' is not the folder of {self.machines[0].name}: what "
                             "that writes there is not seen; it has to be on a file system that all share", 2)
        try:
            self.everywhere(see)
            self.shared_here = os.path.exists(f"{self.out}/shared_{self.token}")
        finally:
            self.machines[0].run("--out", f"rm -f {token}")

    def copy_bundle(self, machine):
        folder = f'"$local/bundle-{self.digest}"'
        if machine.run("programs", self.local() + f"[ -f {folder}/complete ] && echo there || true") == "there":
            return
        # Renames the folder into place, because another launcher may copy the same at this time.
        machine.run("copying the programs", self.local() + f"""new=$(mktemp -d "$local/new.XXXXXX")
trap 'rm -rf "$new"' EXIT
cat >"$new/bundle" && tar -C "$new" -xf "$new/bundle" && rm "$new/bundle" && [ -x "$new/hdps/local_cluster.sh" ] ||
  {{ echo "the bundle could not be unpacked" >&2; exit 3; }}
touch "$new/complete"
mv -T "$new" {folder} 2>/dev/null || [ -f {folder}/complete ]""", self.bundle.read_bytes(), COPY_SECONDS)

    def keys_of(self, machine):
        """Packs the keys of the machine's roles and the list of allowed keys."""
        names = ["allowed", *[f"{role}.key" for role in machine.host.roles()]] if self.options.keys else []
        return subprocess.run(["tar", "-C", self.options.keys or "/", "-c", *(names or ["-T", "/dev/null"])],
                              stdout=subprocess.PIPE, check=True).stdout

    # While it runs.

    def start_part(self, machine):
        """Starts the part. Its keys are sent first; they and spilled rows are removed when it ends."""
        o, host, lead = self.options, machine.host, self.machines[0].host
        address = f"tcp://{lead.address}:{o.port}"
        flags = [f"--job={self.job}", f"--out={self.out}", f"--node-rank={host.rank}", f"--host={host.address}",
                 f"--servers={host.servers}", f"--workers={host.workers}", f"--first-server={host.first_server}",
                 f"--first-worker={host.first_worker}", f"--total-servers={sum(m.host.servers for m in self.machines)}",
                 f"--total-workers={sum(m.host.workers for m in self.machines)}", f"--watched={SILENCE_SECONDS}",
                 ("--listen=" if host is lead else "--scheduler=") + address, *o.passed]
        keys, packed = '--keys="$own/keys"' if o.keys else "", self.keys_of(machine)
        script = self.local() + f"""own=$(mktemp -d "$local/run.XXXXXX") && mkdir "$own/keys" || exit 3
trap 'rm -rf "$own"' EXIT
head -c {len(packed)} | tar -C "$own/keys" -x --no-same-owner || exit 3
umask "$old"
"$local/bundle-{self.digest}/hdps/local_cluster.sh" {shlex.join(flags)} --spill_path="$own/spill" {keys}"""
        streams = {} if host is lead else {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        machine.part = machine.start(script, **streams)
        self.tell(machine, packed)
        if host is not lead:
            threading.Thread(target=self.pass_on, args=(machine,), daemon=True).start()

    @staticmethod
    def pass_on(machine):
        """Prints the output of a machine other than the first, with its name in front."""
        for line in machine.part.stdout:
            sys.stderr.write(shown(f"{machine.name}: {line.decode(errors='backslashreplace')}"))
            sys.stderr.flush()

    def tell(self, machine, line):
        """Sends a line to the machine's part, unless it has ended."""
        try:
            machine.part.stdin.write(line)
            machine.part.stdin.flush()
        except OSError:
            pass

    def stop(self, *_):
        """The first signal drains the job, the second ends it at once."""
        self.stops += 1

    def follow(self):
        """Watches until the leader's part has ended; returns the job's exit status."""
        lead, asked, beat, failed = self.machines[0], 0, 0.0, None
        while lead.part.poll() is None:
            if time.monotonic() - beat >= 1:
                beat = time.monotonic()
                for machine in self.machines:
                    self.tell(machine, b"\n")
            if self.stops > asked:
                asked = self.stops
                if asked > 1:
                    return 130
                self.tell(lead, b"stop\n")
            for machine in self.machines[1:]:
                code = machine.part.poll()
                if code == 255 and machine not in self.lost:
                    self.lost.add(machine)
                    say(f"warning: {machine.name}: the connection is lost; its part ends there within "
                        f"{SILENCE_SECONDS} s, and the job does as for members that are lost")
                elif code and code != 255 and failed is None:
                    failed = time.monotonic()
            # Gives the scheduler time to report what it misses, and then stops the job.
            if failed is not None and time.monotonic() - failed > 5 and not self.stops:
                self.stops = 1
            time.sleep(0.05)
        code = lead.part.returncode if lead.part.returncode >= 0 else 255
        # When a part gives up, its members drain the job as they end, so the status is that part's.
        self.await_others(5)
        for machine in self.machines[1:]:
            if code in (0, 130) and machine.part.poll() in (2, 3):
                say(f"error: the part of {machine.name} ended with status {machine.part.returncode}, and so the job")
                code = machine.part.returncode
        if code == 255:
            say(f"error: {lead.name}: the connection is lost; it leads, so all others are ended too")
            return 3
        return code

    def await_others(self, seconds):
        """Waits for the other parts, which end by themselves once the scheduler has told them."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(m.part.poll() is None for m in self.machines[1:]) and self.stops < 2:
            time.sleep(0.05)

    def end(self):
        """Ends the parts that still run, names those that do not end in time, and collects their files."""
        parts = [m for m in self.machines if m.part]
        for machine in parts:
            if machine.part.poll() is None:
                machine.part.stdin.close()  # That ends it.
        deadline = time.monotonic() + END_SECONDS
        for machine in parts:
            try:
                machine.part.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                say(f"warning: {machine.name}: its part has not ended within {END_SECONDS} s")
                machine.part.kill()
        if parts and not self.shared_here and self.machines[0].connection.poll() is None:
            self.collect()

    def collect(self):
        """Copies logs and figures of the run, if this machine does not see --out."""
        os.makedirs(self.out, exist_ok=True)
        there = " ".join(FILES)
        packer = self.machines[0].start(f"cd {shlex.quote(self.out)} && tar -cz $(ls -d {there} 2>/dev/null)",
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            packed = packer.communicate(timeout=CHECK_SECONDS)[0]
            subprocess.run(["tar", "-C", self.out, "-xz"], input=packed, check=True, stderr=subprocess.DEVNULL)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            packer.kill()
            say(f"warning: {self.machines[0].name}: logs of {self.out} could not be collected")

    def run(self):
        try:
            self.prepare()
            for machine in self.machines:
                self.start_part(machine)
            return self.follow()
        finally:
            for number in STOP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            self.end()
            for machine in self.machines:
                machine.close()


def options_of(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/cluster.sh", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs a job on several machines over ssh; its exit status is the job's.",
        epilog=cluster_hosts.__doc__ + f"""
Passed on to local_cluster.sh: {" ".join((*PASSED, *PASSED_FLAGS))}
--job, its data and --out have to lie under the same path on all machines, --out on a shared file system.""")
    parser.add_argument("--hosts", required=True, help="the machines, see below")
    parser.add_argument("--job", required=True, help="the job file, under the same path on all machines")
    parser.add_argument("--out", required=True, help="a folder that all machines share")
    parser.add_argument("--servers", type=int, help="how many in all (default: one a machine)")
    parser.add_argument("--workers", type=int, help="how many in all (default: one a machine, or its slots)")
    parser.add_argument("--keys", default="", help="a folder of hdps keygen; each machine gets what its roles need")
    parser.add_argument("--bundle", help="of scripts/dev/bundle.sh (default: build/hdps-bundle.tar.xz)")
    parser.add_argument("--port", type=int, default=8118, help="of the scheduler (default 8118)")
    parser.add_argument("--ssh", default="ssh", help='how a machine is reached, as "ssh -p 2222 -i KEY"')
    parser.add_argument("--local", default="", help="folder on each machine's own disk (default /var/tmp/hdps-UID)")
    options, rest = parser.parse_known_args(arguments)
    for argument in rest:
        if not argument.startswith(PASSED) and argument not in PASSED_FLAGS:
            raise Failed(f"unknown argument '{argument}' (see --help)", 2)
    options.passed = rest
    return options


def check(options):
    """Checks what is known before any machine is contacted; returns the machines."""
    if not os.path.isfile(options.job):
        raise Failed(f"--job: there is no file '{options.job}'", 2)
    bundle = options.bundle or str(ROOT.parent / "build" / "hdps-bundle.tar.xz")
    if not os.path.isfile(bundle):
        raise Failed(f"--bundle: there is no file '{bundle}'; scripts/dev/bundle.sh makes one", 2)
    try:
        with open(options.hosts, encoding="utf-8") as file:
            hosts = cluster_hosts.parse(file.read())
        cluster_hosts.place(hosts, options.servers, options.workers)
        for host in hosts:
            host.find_address(alone=len(hosts) == 1)
    except OSError as error:
        raise Failed(f"--hosts: {options.hosts}: {error.strerror}", 2) from None
    except cluster_hosts.Mistake as mistake:
        raise Failed(f"--hosts: {options.hosts}{mistake}", 2) from None
    if not shutil.which((shlex.split(options.ssh) or [""])[0]):
        raise Failed(f"--ssh: there is no program '{options.ssh}'", 2)
    if options.keys:
        for name in sorted({"allowed", *(f"{role}.key" for host in hosts for role in host.roles())}):
            if not os.path.isfile(os.path.join(options.keys, name)):
                raise Failed(f"--keys: there is no file '{name}' in '{options.keys}'; hdps keygen makes all", 2)
    return hosts


def main():
    try:
        runtime = tempfile.mkdtemp(prefix="hdps_ssh_")
    except OSError as error:
        say(f"error: no folder can be made for this run: {error.strerror}; set TMPDIR")
        return 2
    try:
        options = options_of(sys.argv[1:])
        run = Run(options, check(options), runtime)
        for number in STOP_SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # As SIGHUP is under nohup.
                signal.signal(number, run.stop)
        return run.run()
    except Failed as failure:
        say(f"error: {failure}")
        return failure.status
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
