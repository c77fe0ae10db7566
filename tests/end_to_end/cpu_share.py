"""Gives a process a share of one core, as a smaller machine would, by a control group of the kernel."""
import pathlib
import time

PERIOD_US = 40_000  # A process waits for the rest of a period where it has used its share of it.
# Where the kernel's two versions have their groups, and what is written into which of a group's files. The last one
# of each puts the group before all others that want the cores: it has its share also beside them.
VERSIONS = (
    ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "{period}", "cpu.cfs_quota_us": "{quota}", "cpu.shares": "262144"}),
    ("/sys/fs/cgroup", {"cpu.max": "{quota} {period}", "cpu.weight": "10000"}))


class CpuShare:
    """A group of processes which together have `share` of one core. Raises OSError where no group can be made."""

    def __init__(self, name, share):
        groups, texts = next(((pathlib.Path(groups), texts) for groups, texts in VERSIONS
                              if (pathlib.Path(groups) / "cgroup.procs").exists()), (None, None))
        if groups is None:
            raise OSError("no control groups at /sys/fs/cgroup")
        self.folder = groups / name
        self.folder.mkdir()
        try:
            for file, text in texts.items():
                (self.folder / file).write_text(text.format(quota=int(share * PERIOD_US), period=PERIOD_US))
        except OSError:
            self.remove()
            raise

    def add(self, process):
        (self.folder / "cgroup.procs").write_text(str(process.pid))

    def remove(self):
        """Takes the group away; its processes have ended, or will in a moment."""
        deadline = time.monotonic() + 10
        while True:
            try:
                self.folder.rmdir()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)  # Asks again until the kernel has forgotten the last process.
