"""Tests the compose file and the Containerfile: by rules, and the former's commands as processes of this machine."""
import copy
import re
import unittest

import harness

try:
    import yaml
except ImportError:
    yaml = None
COMPOSE = harness.ROOT / "examples" / "compose.yaml"
CONTAINERFILE = harness.ROOT / "Containerfile"
EXAMPLES = "/usr/share/doc/hdps/examples"  # In the image.


def flags_of(service):
    return dict(word.removeprefix("--").partition("=")[::2] for word in service["command"][1:])


def services_of(compose, program):
    return {name: s for name, s in compose["services"].items() if s["command"][0] == program}


def mistakes_in(compose):
    """What of a compose file would not run, or would allow more than a member needs."""
    found = []
    scheduler, = services_of(compose, "hdps-scheduler").values()
    for role in ("server", "worker"):
        if str(len(services_of(compose, f"hdps-{role}"))) != flags_of(scheduler)[f"{role}s"]:
            found.append(f"not as many {role}s as the scheduler expects")
    for name, service in compose["services"].items():
        flags = flags_of(service)
        own = (service["networks"]["hdps"] or {}).get("ipv4_address")
        if flags.get("scheduler", flags_of(scheduler)["listen"]) != flags_of(scheduler)["listen"]:
            found.append(f"{name} asks a scheduler that is not there")
        if "listen" in flags and not flags["listen"].startswith(f"tcp://{own}:"):
            found.append(f"{name} listens on an address that is not its own")
        if not service.get("read_only") or service.get("cap_drop") != ["ALL"] or "privileged" in service or \
                "no-new-privileges:true" not in service.get("security_opt", []):
            found.append(f"{name} may more than it needs")
        if "insecure" in flags and not all(compose["networks"][n].get("internal") for n in service["networks"]):
            found.append(f"{name} has no keys on a network that others reach")
        for volume in service["volumes"]:
            if volume.split(":")[0] not in compose["volumes"]:
                found.append(f"{name} has the volume {volume}, which is not declared")
        if service["image"] != "hdps":
            found.append(f"{name} has the image {service['image']}")
    return found


@unittest.skipIf(yaml is None, "there is no python3-yaml (scripts/install_deps.sh --developer)")
class Compose(harness.DaemonsCase):
    def test_rules(self):
        compose = yaml.safe_load(COMPOSE.read_text())
        self.assertEqual(len(compose["services"]), 5)
        self.assertEqual(mistakes_in(compose), [])
        for what, plant in {
            "not as many": lambda c: c["services"].pop("worker-1"),
            "asks a scheduler": lambda c: c["services"]["worker-0"]["command"].__setitem__(2, "--scheduler=tcp://10.0.0.1:1"),
            "listens on": lambda c: c["services"]["server-1"]["networks"]["hdps"].clear(),
            "may more": lambda c: c["services"]["server-0"].update(read_only=False),
            "has no keys": lambda c: c["networks"]["hdps"].update(internal=False),
            "is not declared": lambda c: c["volumes"].clear(),
            "has the image": lambda c: c["services"]["server-0"].update(image="other"),
        }.items():
            planted = copy.deepcopy(compose)
            plant(planted)
            self.assertIn(what, " ".join(mistakes_in(planted)))

    def test_its_commands_train_as_one_process_does(self):
        compose = yaml.safe_load(COMPOSE.read_text())
        ports = {}

        def here(word):
            """The word with places of this machine: programs, examples, the volume, and a port for each address."""
            word = word.replace(EXAMPLES, str(harness.ROOT / "examples")).replace("=/out/", f"={self.folder}/")
            return re.sub(r"tcp://\S+", lambda a: ports.setdefault(a[0], f"tcp://127.0.0.1:{harness.free_port()}"), word)

        members = {name: self.start(*map(here, service["command"])) for name, service in compose["services"].items()}
        for name, process in members.items():
            _, said = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, f"{name}: {said[-1000:]}")
        one = harness.train(harness.CENSUS, self.out("one"), servers=2, workers=2)
        digest = harness.summary_of(self.out("census"))["digest"]
        harness.figure(f"the commands of {COMPOSE.name}: digest {digest}, of one process {one['digest']}")
        self.assertEqual(digest, one["digest"])


class Image(unittest.TestCase):
    def test_containerfile(self):
        """Two stages, the second without what builds and not as root; images by their short names."""
        stages = CONTAINERFILE.read_text().split("\nFROM ")
        self.assertEqual(len(stages), 3)
        self.assertTrue(stages[1].startswith("debian:12 AS build\n"))
        last = stages[2]
        self.assertTrue(last.startswith("debian:12-slim\n"))
        self.assertRegex(last, r"\nUSER [1-9]\d*:[1-9]\d*\n")
        self.assertEqual(re.findall(r"install (?:\S+ )*--no-install-recommends (\S+)", last), ["/packages/hdps_*.deb"])
        for script in re.findall(r"scripts/\S+\.sh", stages[1]):
            self.assertTrue((harness.ROOT / script).exists(), script)


if __name__ == "__main__":
    harness.main()
