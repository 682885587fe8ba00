"""What must have happened in a simulation: a plain and slow program that shares no code with the system.

It knows the rules only as they are written down for users: it steps through the moments at which sensors are
evaluated, keeps everything in dictionaries, and works every question out again whenever it comes up. Runs take no
time, since the clock of the simulation stands still while they are executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from tests.simulation.expected import Change, Expected, Present, ProcessKey, Run
from tests.simulation.world import FeedKey, Input, Process, World, instance_at, resolve, timeline


class Oracle:
    """Steps through a world's ticks; afterwards `instances` and `orders` say what must be found."""

    def __init__(self, world: World, fails: Callable[[str, datetime, int], bool]) -> None:
        """Args: the world; whether run number n (from 1) of a process at a nominal time fails."""
        self.world, self.fails = world, fails
        self.disk: dict[FeedKey, str] = {}
        self.present: dict[FeedKey, Present] = {}
        self.instances: dict[ProcessKey, Expected] = {}
        self.orders: list[tuple[datetime, ProcessKey, ProcessKey]] = []  # in this tick, the first before the second
        self.running_since = {p.name: world.begin for p in world.processes}
        self.suspended: set[str] = set()
        self.producers: dict[FeedKey, ProcessKey] = {}
        for process, cluster in self._placed():
            for nominal in timeline(process.start, process.end, process.every, process.zone):
                for feed, expression in process.outputs:
                    time = instance_at(world.feed(feed), resolve(expression, nominal, process.zone))
                    if time:
                        self.producers[cluster, feed, time] = (process.name, cluster, nominal)

    def run(self) -> Oracle:
        for now in self.world.ticks:
            self._obey(now)
            self._collect(now)
            self._note_too_late()
            self._time_out(now)
            self._note_orders(now)
            while self._round(now):
                self._note_too_late()
        return self

    # What comes from outside.

    def _obey(self, now: datetime) -> None:
        for command in self.world.commands:
            if command.tick == now and command.verb == "suspend":
                self.suspended.add(command.process)
            elif command.tick == now:
                self.suspended.discard(command.process)
                self.running_since[command.process] = now

    def _collect(self, now: datetime) -> None:
        """The collector's tick: all that is missing, and what was within its cut-off at the tick before this one."""
        unseen = max((tick for tick in self.world.ticks if tick < now), default=None)
        before = unseen or now
        for arrival in self.world.arrivals:
            if arrival.time <= now:
                self.disk[arrival.key] = arrival.version
        for key, version in self.disk.items():
            known, within = self.present.get(key), before <= key[2] + self.world.feed(key[1]).cut_off
            if key[2] <= now and (known is None or (known.version != version and within)):
                self.present[key] = Present(version, now, unseen=unseen)

    # What an instance needs.

    def _window(self, process: Process, cluster: str, item: Input, nominal: datetime) -> list[datetime] | None:
        """The input instances in a window; None while `latest` finds too few."""
        feed = self.world.feed(item.feed)
        every = timeline(feed.start, feed.end, feed.every, feed.zone)
        if item.start.startswith("latest"):
            first, last = (-int(e.removeprefix("latest(").removesuffix(")")) for e in (item.start, item.end))
            found = [t for t in every if t <= nominal and (cluster, feed.name, t) in self.present][::-1]
            return sorted(found[last : first + 1]) if len(found) > first else None
        start, end = (resolve(e, nominal, process.zone) for e in (item.start, item.end))
        first_instance = instance_at(feed, start) or feed.start
        last_instance = instance_at(feed, end)
        return [t for t in every if last_instance and first_instance <= t <= last_instance]

    def _reads(
        self, process: Process, cluster: str, nominal: datetime
    ) -> dict[tuple[str, datetime], str | None] | None:
        """The versions that a run would read now, None for absent optional ones; None while it has to wait."""
        read: dict[tuple[str, datetime], str | None] = {}
        for item in process.inputs:
            times = self._window(process, cluster, item, nominal)
            if times is None:
                if not item.optional:
                    return None
                continue
            for time in times:
                key = (cluster, item.feed, time)
                if key not in self.present and not item.optional:
                    return None
                read[item.name, time] = self.disk.get(key) if key in self.present else None
        return read

    def _held(self, key: ProcessKey, now: datetime, late_inputs_only: bool = False) -> bool:
        """Whether a producer of one of the inputs is about to run again because of late data, or will follow one."""
        process, cluster, nominal = self.world.process(key[0]), key[1], key[2]
        listed = [name for name, _workflow in process.late.inputs] if process.late else []
        for item in process.inputs:
            if late_inputs_only and item.name not in listed:
                continue
            for time in self._window(process, cluster, item, nominal) or []:
                producer = self.producers.get((cluster, item.feed, time))
                if producer and (self._due_changes(producer, now) or self._follows(producer, now)):
                    return True
        return False

    def _follows(self, key: ProcessKey, now: datetime) -> bool:
        return self._instance(key).state == "SUCCEEDED" and self._held(key, now, late_inputs_only=True)

    # Late data.

    def _changes(self, key: ProcessKey) -> list[Change]:
        expected, process = self._instance(key), self.world.process(key[0])
        if expected.state != "SUCCEEDED" or process.late is None:
            return []
        feeds = {item.name: item.feed for item in process.inputs}
        changes = []
        for name, _workflow in process.late.inputs:
            last = expected.last_success()
            for (read_name, time), version in sorted(last.read.items(), key=lambda entry: entry[0]):
                place = (key[1], feeds[name], time)
                present = self.present.get(place)
                # What was seen before the run is older than what the run found on the disk.
                newer = present and (place in self.producers or present.seen > last.at)
                if read_name == name and present and newer and present.version != version:
                    changes.append(Change(name, feeds[name], time, version, present.version))
        return changes

    def _counts(self, key: ProcessKey, change: Change) -> bool:
        present = self.present[key[1], change.feed, change.instance]
        cut_off = change.instance + self.world.feed(change.feed).cut_off
        made_up_for = any(present.may_be_found_at(check) for check in self._check_times(key) if check <= cut_off)
        return present.cascade or present.seen <= cut_off or made_up_for

    def _check_times(self, key: ProcessKey) -> Iterator[datetime]:
        process, nominal = self.world.process(key[0]), key[2]
        assert process.late is not None
        listed = {name for name, _workflow in process.late.inputs}
        feeds = {item.name: self.world.feed(item.feed) for item in process.inputs}
        ends = [time + feeds[name].cut_off for name, time in self._instance(key).last_success().read if name in listed]
        number = 1
        while process.late.policy != "final":
            steps = number if process.late.policy == "backoff" else 2**number - 1
            if nominal + steps * process.late.delay >= max(ends):
                break
            yield nominal + steps * process.late.delay
            number += 1
        yield max(ends)

    def _due_changes(self, key: ProcessKey, now: datetime) -> list[Change]:
        """The changes for which the instance has to run again now: all that count, once one of them is due."""
        if self._instance(key).causes:
            return self._instance(key).causes
        counting = [change for change in self._changes(key) if self._counts(key, change)]
        for change in counting:
            present = self.present[key[1], change.feed, change.instance]
            if present.cascade or any(
                check <= now and present.may_be_found_at(check) for check in self._check_times(key)
            ):
                return counting
        return []

    def _note_too_late(self) -> None:
        """What does not count is said once, unless the instance is to run again anyway and will read it then."""
        for key in list(self.instances):
            changes = self._changes(key)
            if not any(self._counts(key, change) for change in changes):
                self._instance(key).too_late.update(changes)

    # Deciding and running.

    def _ready(self, key: ProcessKey, now: datetime) -> bool:
        process, expected = self.world.process(key[0]), self._instance(key)
        open_now = not expected.settled and not expected.causes and expected.opens <= now
        reads = self._reads(process, key[1], key[2]) if open_now else None
        return reads is not None and not self._held(key, now) and not self._waits_for_optional(key, now)

    def _ready_in_order(self, process: Process, cluster: str, now: datetime) -> list[ProcessKey]:
        ready = [key for key in self._due(now, process, cluster) if self._ready(key, now)]
        return sorted(ready, key=lambda key: key[2], reverse=process.order != "FIFO")

    def _note_orders(self, now: datetime) -> None:
        for process, cluster in self._placed():
            if process.order == "LAST_ONLY":
                continue
            ready = self._ready_in_order(process, cluster, now)
            for position, first in enumerate(ready):
                self.orders += [(now, first, second) for second in ready[position + process.parallel :]]

    def _time_out(self, now: datetime) -> None:
        for process, cluster in self._placed():
            for key in self._due(now, process, cluster):
                expected = self._instance(key)
                waits_from = max(key[2], self.running_since[process.name], expected.opens)
                if expected.settled or now < self._first_look(process, waits_from) + process.timeout:
                    continue
                if self._reads(process, cluster, key[2]) is not None:
                    continue
                makers = [self._instance(maker) for maker in self._makers_of_lacking(process, cluster, key[2])]
                ends = [maker.ended or now for maker in makers]
                if all(maker.settled for maker in makers) and all(
                    now >= self._first_look(process, end) + process.timeout for end in ends
                ):
                    self._fail(key, now, "TIMED_OUT")

    def _first_look(self, process: Process, moment: datetime) -> datetime:
        """When somebody looked first at what is there since a moment; a pause is as long as an instance may wait."""
        before = max((tick for tick in self.world.ticks if tick < moment), default=None)
        first = min((tick for tick in self.world.ticks if tick >= moment), default=moment)
        return first if before is None or first - before >= process.timeout else moment

    def _makers_of_lacking(self, process: Process, cluster: str, nominal: datetime) -> Iterator[ProcessKey]:
        """Those of what required inputs lack; a window of `latest` is made by all that are before it."""
        for item in process.inputs:
            times = self._window(process, cluster, item, nominal)
            if item.optional:
                continue
            if times is None:
                keys = [key for key in self.producers if key[:2] == (cluster, item.feed)]
                yield from (self.producers[key] for key in keys if self.producers[key][2] <= nominal)
                continue
            for time in times:
                producer = self.producers.get((cluster, item.feed, time))
                if producer and (cluster, item.feed, time) not in self.present:
                    yield producer

    def _is_about_to_be_made(self, key: ProcessKey, now: datetime) -> bool:
        """Whether a producer that is due has all that it needs, or lacks only what is about to be made itself."""
        process, expected = self.world.process(key[0]), self._instance(key)
        if key not in self._due(now, process, key[1]) or expected.settled or expected.opens > now:
            return False
        if self._reads(process, key[1], key[2]) is not None:
            return True
        makers = list(self._makers_of_lacking(process, key[1], key[2]))
        lacks_from_outside = any(
            (key[1], item.feed, time) not in self.present and (key[1], item.feed, time) not in self.producers
            for item in process.inputs
            if not item.optional
            for time in self._window(process, key[1], item, key[2]) or []
        )
        return bool(makers) and not lacks_from_outside and all(self._is_about_to_be_made(one, now) for one in makers)

    def _waits_for_optional(self, key: ProcessKey, now: datetime) -> bool:
        process, cluster, nominal = self.world.process(key[0]), key[1], key[2]
        lacking = [
            (cluster, item.feed, time)
            for item in process.inputs
            if item.optional and not item.start.startswith("latest")
            for time in self._window(process, cluster, item, nominal) or []
        ]
        makers = [self.producers[one] for one in lacking if one in self.producers and one not in self.present]
        return any(self._is_about_to_be_made(maker, now) for maker in makers)

    def _round(self, now: datetime) -> bool:
        """Everything that can start now, decided before any of it runs. False when nothing could."""
        late, normal = [], []
        for process, cluster in self._placed():
            for key in self._due(now, process, cluster):
                changes = self._due_changes(key, now)
                if changes and self._instance(key).opens <= now and not self._held(key, now):
                    late.append((key, changes))
            ready = self._ready_in_order(process, cluster, now)
            if process.order == "LAST_ONLY":
                for older in ready[1:]:
                    self._instance(older).state, self._instance(older).settled = "SKIPPED", True
                ready = ready[:1]
            normal += ready
        for key, changes in late:
            self._execute(key, now, changes)
        for key in normal:
            self._execute(key, now, [])
        return bool(late or normal)

    def _execute(self, key: ProcessKey, now: datetime, causes: list[Change]) -> None:
        process, expected = self.world.process(key[0]), self._instance(key)
        read = self._reads(process, key[1], key[2])
        assert read is not None, key
        causes = [replace(cause, present=read[cause.input, cause.instance]) for cause in causes]
        workflows = dict(process.late.inputs) if process.late else {}
        changed = {cause.input for cause in causes}
        workflow = next((name for name, own in workflows.items() if own and name in changed), "")
        number = len(expected.runs) + 1
        expected.runs.append(Run(now, not self.fails(process.name, key[2], number), read, causes, workflow))
        if not expected.runs[-1].succeeded:
            expected.causes = causes
            self._fail(key, now, "FAILED")
            return
        expected.state, expected.settled, expected.failures, expected.causes = "SUCCEEDED", True, 0, []
        for produced, producer in self.producers.items():
            if producer == key:
                label = f"{process.name}@{key[2]:%Y-%m-%dT%H:%MZ}#{number}"
                self.disk[produced] = label
                self.present[produced] = Present(label, now, cascade=bool(causes))

    def _fail(self, key: ProcessKey, now: datetime, state: str) -> None:
        expected, retry = self._instance(key), self.world.process(key[0]).retry
        expected.failures += 1
        again = retry.policy != "final" and expected.failures <= retry.attempts
        expected.ended = now
        expected.state, expected.settled = state, not (again and (state == "FAILED" or retry.on_timeout))
        factor = 1 if retry.policy == "periodic" else 2 ** (expected.failures - 1)
        expected.opens = now + factor * retry.delay
        if expected.settled:
            expected.causes = []

    # Looking things up.

    def _placed(self) -> list[tuple[Process, str]]:
        return [(process, cluster) for process in self.world.processes for cluster in process.clusters]

    def _due(self, now: datetime, process: Process, cluster: str) -> list[ProcessKey]:
        """The instances whose time has come; none while the process is suspended."""
        if process.name in self.suspended:
            return []
        every = timeline(process.start, process.end, process.every, process.zone)
        return [(process.name, cluster, nominal) for nominal in every if nominal <= now]

    def _instance(self, key: ProcessKey) -> Expected:
        return self.instances.setdefault(key, Expected(key[2]))
