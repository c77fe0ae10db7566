"""Watches the processes of a running job from outside, and reads what the job reports about itself."""
import collections
import json
import os
import pathlib
import re
import statistics
import time

# A moment of so many seconds is quiet when nothing was done to the job, and nobody was lost, for so long
# before, and steps are made.
QUIET_S, SETTLED_S = 3, 5
# malloc extends each of its heaps by so much at a time: M_TOP_PAD in common/process/process_life.cc.
HEAP_STEP_KIB = 4 << 10
# Of a process that neither listens nor dials: one to wake its loop and three of ZeroMQ's context. Each
# socket of ZeroMQ has another one: one that listens, and the two by which its connections are told.
OWN_EVENTFDS, LISTENER_EVENTFDS = 4, 3
PAGE_EVENTFDS, PAGE_SOCKETS = 1, 1  # Of the scheduler, whose page wakes its loop and listens.
# Shorter lives tell nothing about a trend.
TREND_S = 60


def kind_of(link):
    """What a descriptor is, by the text of its link in /proc: socket, memfd, eventfd, pidfd, file, ..."""
    if link.startswith("/memfd:"):
        return "memfd"
    if link.startswith("/"):
        return "file"
    return re.sub(r"anon_inode:\[?(\w+)\]?.*|(\w+):.*", lambda match: match[1] or match[2], link)


class Life:
    """One process of a member, as it was seen."""

    def __init__(self, member, pid):
        self.member, self.pid = member, pid
        self.memory = []  # (seconds, KiB, threads)
        self.descriptors = []  # (seconds, {kind: count})

    def look(self, now):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        field = lambda name: int(re.search(rf"^{name}:\s+(\d+)", status, re.M)[1])
        memory = (now, field("VmRSS"), field("Threads"))
        kinds = collections.Counter()
        folder = f"/proc/{self.pid}/fd"
        for name in os.listdir(folder):
            try:
                kinds[kind_of(os.readlink(f"{folder}/{name}"))] += 1
            except FileNotFoundError:
                continue  # Closed meanwhile.
        self.memory.append(memory)
        self.descriptors.append((now, kinds))

    def quiet_descriptors(self, begin, end):
        """How many of each kind there were all the time between these moments; None without samples."""
        seen = [kinds for at, kinds in self.descriptors if begin <= at <= end]
        if len(seen) < 5:
            return None
        return {kind: min(kinds[kind] for kinds in seen) for kind in set().union(*seen)}

    def growth_kib(self):
        """From the second quarter of this life to the last one; None when it was short. The first
        quarter is left out: buffers, caches and heaps fill while each phase comes for the first time."""
        begin, end = self.memory[0][0], self.memory[-1][0]
        if end - begin < TREND_S:
            return None

        def median_of(quarter):
            parts = [kib for at, kib, _ in self.memory
                     if quarter <= 4 * (at - begin) / (end - begin) <= quarter + 1]
            return statistics.median(parts) if parts else None
        before, after = median_of(1), median_of(3)
        return None if None in (before, after) else after - before

    def growth_kib_max(self):
        """Each thread may have a heap of its own, and may have touched one more step of it."""
        return HEAP_STEP_KIB * max(threads for _, _, threads in self.memory)


class Watch:
    """The members of the job that runs in `out`."""

    def __init__(self, out, servers, workers, replicas):
        self.out = pathlib.Path(out)
        self.servers, self.workers, self.replicas = servers, workers, replicas
        self.members = [*servers, *workers, "scheduler"]
        self.began = time.monotonic()
        self.lives = []
        self.news = []    # (seconds, step): lines of progress, by when they were seen
        self.events = []  # (seconds, event)
        self.step = -1
        self.bytes_read = 0
        self.quiet = []  # (begin, end)

    def now(self):
        return time.monotonic() - self.began

    def pid(self, member):
        """Of the process that runs as this member; None without one."""
        path = self.out / "pid" / f"{member}.pid"
        try:
            pid = int(path.read_text())
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except (OSError, ValueError):
            return None
        return pid if str(path) in command else None

    def all_run(self):
        return all(self.pid(member) for member in self.members)

    def look(self):
        for member in self.members:
            pid = self.pid(member)
            if pid is None:
                continue
            life = next((life for life in self.lives if life.pid == pid), None)
            if life is None:
                life = Life(member, pid)
                self.lives.append(life)
            try:
                life.look(self.now())
            except (OSError, TypeError):
                continue  # It has just ended.
        self.read_metrics()

    def read_metrics(self):
        path = self.out / "metrics.jsonl"
        if not path.exists():
            return
        with open(path, "rb") as file:
            file.seek(self.bytes_read)
            text = file.read()
        whole = text[:text.rfind(b"\n") + 1]
        self.bytes_read += len(whole)
        for line in whole.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # The disk was full in the middle of it.
            if "event" in entry:
                self.events.append((self.now(), entry))
            elif "step" in entry:
                self.step = entry["step"]
                self.news.append((self.now(), self.step))

    def note_quiet(self, since):
        """Nothing was done to the job since that moment; so the last seconds may have been quiet."""
        begin, end = self.now() - QUIET_S, self.now()
        disturbed = max([since, *(at for at, _ in self.events)])
        if self.quiet and begin < self.quiet[-1][1]:
            return
        if begin - disturbed >= SETTLED_S and sum(begin < at for at, _ in self.news) >= 2:
            self.quiet.append((begin, end))

    def longest_silence(self, begin, end):
        """The longest time without a line of progress, which comes every second while steps are made."""
        times = [begin, *(at for at, _ in self.news if begin < at < end), end]
        return max(then - at for at, then in zip(times, times[1:]))

    def events_between(self, begin, end):
        return [event for at, event in self.events if begin <= at < end]

    def peers_of(self, member):
        """With how many others a member speaks."""
        if member == "scheduler":
            return len(self.members) - 1
        if member in self.workers:
            return 1 + len(self.servers)
        # Copies go along a chain: from one server at most, to one at most, for each group.
        return 1 + len(self.workers) + (len(self.servers) - 1 if self.replicas else 0)

    def dials_of(self, member):
        """How many others it dials at most. Which of two servers dials depends on their numbers."""
        if member == "scheduler":
            return 0
        return self.peers_of(member) - (len(self.workers) if member in self.servers else 0)

    def leaks(self):
        """What a process holds at a quiet moment beyond what it needs for those it speaks with; and how
        many processes were judged, at how many moments."""
        found, judged, moments = [], 0, 0
        for life in self.lives:
            first, peers = None, self.peers_of(life.member)
            for begin, end in self.quiet:
                held = life.quiet_descriptors(begin, end)
                if held is None or life.memory[0][0] > begin - SETTLED_S:
                    continue
                first = first or held
                moments += 1
                count = lambda kind: held.get(kind, 0)
                listens = life.member not in self.workers
                limits = {kind: first.get(kind, 0) for kind in held}
                page = life.member == "scheduler"
                limits["eventfd"] = (OWN_EVENTFDS + LISTENER_EVENTFDS * listens + PAGE_EVENTFDS * page +
                                     self.dials_of(life.member))
                limits["socket"] = listens + peers + PAGE_SOCKETS * page
                limits["pidfd"] = peers
                limits["memfd"] = count("pidfd")  # Whom memory is shared with is watched.
                found += [f"{life.member} ({life.pid}) at {end:.0f} s: {count(kind)} of kind {kind}, at most "
                          f"{limit} expected; {held}, at first {first}"
                          for kind, limit in limits.items() if count(kind) > limit]
            judged += first is not None
        return found, judged, moments

    def growths(self):
        """(life, KiB by which it grew) of those that lived for long."""
        return [(life, life.growth_kib()) for life in self.lives if life.growth_kib() is not None]
