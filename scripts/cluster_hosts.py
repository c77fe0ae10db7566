"""The file of --hosts has a line for each machine; behind # stands what is for people:

  HOST [address=IP] [slots=N] [servers=N] [workers=N] [scheduler]

  HOST       as ssh knows it: a name, an address or USER@HOST
  address    the machine's address as the others reach it (default: HOST's)
  slots      how many workers it takes at most, such as its GPUs
  servers, workers   just so many; 0 for none
  scheduler  it leads (default: the first)

Servers and workers of --servers and --workers go round the machines that have no count of their own.
"""
import ipaddress
import re
import socket


class Mistake(Exception):
    """A mistake with its place in the file, its value and the remedy; begins with ':LINE: ' or ': '."""


class Host:
    """One machine: its line and, after `place`, its rank and its members."""

    def __init__(self, line, name):
        self.line, self.name = line, name
        self.address = self.slots = self.servers = self.workers = None
        self.leads = False
        self.rank = self.first_server = self.first_worker = 0

    def roles(self):
        """Roles of its programs; it gets the keys of these."""
        counts = {"scheduler": self.rank == 0, "server": self.servers, "worker": self.workers}
        return [role for role, count in counts.items() if count]

    def find_address(self, alone):
        """Resolves the address of HOST if none is given."""
        if self.address:
            return
        name = self.name.rpartition("@")[2]
        try:
            self.address = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
        except OSError:
            raise Mistake(f":{self.line}: '{name}' has no address that this machine can look up; write address=IP "
                          "behind it") from None
        if ipaddress.ip_address(self.address).is_loopback and not alone:
            raise Mistake(f":{self.line}: the address of '{name}' is {self.address}, where other machines cannot reach "
                          "it; write address=IP behind it")


def _word(host, word):
    key, equals, value = word.partition("=")
    if word == "scheduler":
        host.leads = True
    elif key == "address" and equals:
        try:
            host.address = str(ipaddress.IPv4Address(value))
        except ValueError:
            raise Mistake(f":{host.line}: address={value}: expected an IPv4 address, such as 10.0.0.5") from None
    elif key in ("slots", "servers", "workers") and equals:
        if not re.fullmatch(r"\d{1,4}", value):
            raise Mistake(f":{host.line}: {key}={value}: expected a count")
        setattr(host, key, int(value))
    else:
        raise Mistake(f":{host.line}: '{word}': expected address=IP, slots=N, servers=N, workers=N or scheduler")


def parse(text):
    """The machines of a file, the leading one first."""
    hosts = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[0].startswith("-") or "=" in words[0]:
            raise Mistake(f":{number}: '{words[0]}': expected a line to begin with the machine's name")
        for other in hosts:
            if other.name == words[0]:
                raise Mistake(f":{number}: '{words[0]}' is in line {other.line} already")
        hosts.append(Host(number, words[0]))
        for word in words[1:]:
            _word(hosts[-1], word)
    if not hosts:
        raise Mistake(": no machine in it; expected one a line")
    leading = [host for host in hosts if host.leads]
    if len(leading) > 1:
        raise Mistake(f":{leading[1].line}: 'scheduler' is in line {leading[0].line} already")
    hosts.sort(key=lambda host: not host.leads)
    return hosts


def _deal(hosts, what, wanted, room):
    """Distributes `wanted` members round the machines without a count of their own, within their slots."""
    fixed = sum(getattr(host, what) or 0 for host in hosts)
    free = [host for host in hosts if getattr(host, what) is None]
    if wanted is None:
        wanted = fixed + sum(1 if room(host) is None else room(host) for host in free)
    for host in free:
        setattr(host, what, 0)
    left = wanted - fixed
    while left > 0:
        before = left
        for host in free:
            if left and (room(host) is None or getattr(host, what) < room(host)):
                setattr(host, what, getattr(host, what) + 1)
                left -= 1
        if left == before:
            break
    if left:
        raise Mistake(f": --{what}={wanted}: the machines have {'room for ' if left > 0 else ''}"
                      f"{wanted - left} of them")
    if wanted < 1:
        raise Mistake(f": a job needs at least one of the {what}")


def place(hosts, servers, workers):
    """Gives each machine its rank, counts, and the first rank of its servers and workers."""
    _deal(hosts, "servers", servers, lambda host: None)
    _deal(hosts, "workers", workers, lambda host: host.slots)
    first_server = first_worker = 0
    for rank, host in enumerate(hosts):
        host.rank, host.first_server, host.first_worker = rank, first_server, first_worker
        first_server += host.servers
        first_worker += host.workers
