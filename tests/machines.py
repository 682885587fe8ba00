"""Machines of a network of the test's own: network namespaces on a bridge, whose links can be cut and made slow."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass(frozen=True)
class Machine:
    """A network namespace, on the bridge of a test."""

    name: str
    link: str
    address: str

    @property
    def inside(self) -> tuple[str, ...]:
        """Begins a command that runs on it."""
        return "ip", "netns", "exec", self.name

    def unplug(self) -> None:
        """Nothing reaches it any more, and nobody is told: its processes go on."""
        ip("link", "set", self.link, "down")

    def plug_in(self) -> None:
        ip("link", "set", self.link, "up")

    def slow(self, rate: str) -> None:
        """Whatever is sent to it comes at this rate, such as 16kbit."""
        self._shape("add", "tbf", "rate", rate, "burst", "1600", "limit", "300000")

    def fast(self) -> None:
        self._shape("del")

    def _shape(self, word: str, *how: str) -> None:
        subprocess.run(["tc", "qdisc", word, "dev", self.link, "root", *how], check=True, capture_output=True)

    def power_off(self, but: Collection[int] = ()) -> None:
        """Kills all its processes, ``but`` for some."""
        listed = subprocess.run(["ip", "netns", "pids", self.name], check=True, capture_output=True, text=True)
        for number in {int(one) for one in listed.stdout.split()} - {*but}:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)


@contextmanager
def machines(number: int, net: str) -> Iterator[list[Machine]]:
    """As many machines; the first address of ``net``, such as 10.91.7, is that of the test itself."""
    mark = uuid.uuid4().hex[:6]
    bridge = f"fb{mark}"
    with ExitStack() as held:
        ip("link", "add", bridge, "type", "bridge")
        held.callback(ip, "link", "del", bridge)
        ip("addr", "add", f"{net}.1/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        found = []
        for at in range(2, 2 + number):
            one = Machine(f"falcon-{mark}-{at}", f"fv{mark}{at}", f"{net}.{at}")
            ip("netns", "add", one.name)
            held.callback(ip, "netns", "del", one.name)
            ip("link", "add", one.link, "type", "veth", "peer", "name", "eth0", "netns", one.name)
            ip("link", "set", one.link, "master", bridge, "up")
            here = ("-n", one.name)
            ip(*here, "addr", "add", f"{one.address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                ip(*here, "link", "set", device, "up")
            found.append(one)
        yield found
