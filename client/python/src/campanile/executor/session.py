"""Owns an executor's state: takes assignments, starts and stops bodies, hands in results.

All of it runs on one event loop in a thread of its own, and it never waits for a connection: what does not fit now is sent on a
later turn. Bodies run elsewhere and speak to it through `call_soon_threadsafe`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from campanile import limits
from campanile.clock import boot_ms, jittered_sec
from campanile.errors import CampanileError, api_error, connection_lost
from campanile.executor import assignment as wire
from campanile.executor import bodies, failure
from campanile.executor.assignment import Assignment, Held, Key
from campanile.executor.attempts import Attempts, cut, log_chunk
from campanile.executor.bodies import Handling, Report
from campanile.executor.config import Config, Status
from campanile.executor.context import Context, StopReason
from campanile.executor.fence import Fence, Refusal
from campanile.executor.log import AttemptLog, LogBudget
from campanile.executor.nodes import Meeting, NodeKey, Nodes
from campanile.executor.share import share
from campanile.executor.upstream import Asked, Stage, Upstream, What
from campanile.views import Welcome
from campanile.wire import Answer, Connection, Message, open_connection

_log = logging.getLogger("campanile.executor")

_GOOD_SEC = 5.0
"""A connection that lasted this long was a good one: the next attempt to connect does not wait long."""


class Session:
    """See the module's text. Its methods are for its own loop."""

    def __init__(self, config: Config, publish: Callable[[Status], None]) -> None:
        self._config = config
        self._publish = publish
        self._slots: int = config.register["slots"]
        self._nodes = Nodes()
        self._links: dict[int, asyncio.Task[None]] = {}
        self._upstreams: dict[int, Upstream] = {}
        self._attempts = Attempts(config.grace_ms)
        self._fence = Fence()
        self._budget = LogBudget()
        self._log_queue: deque[Key] = deque()
        self._announce_again: set[int] = set()
        self._down_since_ms: dict[int, int] = {}
        self._shares_changed = False
        """Nodes may be due another share of the free slots than they were given."""
        self._shared_ms = 0
        """When shares were given anew last."""
        self._draining_until_ms: int | None = None
        self._forced = False
        self._bodies_ended = 0
        self._last_error: str | None = None
        self._status = Status()
        self._turn_is_due = False
        self._done = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def run(self) -> Status:
        """Until it is drained. Canceled, it goes at once, as a crash would."""
        for address in self._config.addresses:
            self._add(address, None)
        ticks = asyncio.create_task(self._tick_on())
        try:
            await self._done.wait()
        finally:
            tasks = (*self._links.values(), ticks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._attempts.abort_all()
        return self._status

    def _add(self, address: str, told: NodeKey | None) -> None:
        link = self._nodes.add(address, told, boot_ms())
        self._upstreams[link] = Upstream()
        self._links[link] = asyncio.create_task(self._connect(link))

    def _give_up_link(self, link: int) -> None:
        self._links.pop(link).cancel()
        self._upstreams.pop(link).down()
        self._announce_again.discard(link)
        self._down_since_ms.pop(link, None)
        self._nodes.give_up(link)

    async def _connect(self, link: int) -> None:
        """Connects, and connects anew when the connection breaks."""
        wait_ms: float = limits.RECONNECT_MIN_MS
        while True:
            begun = self._loop.time()
            try:
                connection, welcome = await open_connection(
                    self._nodes.address(link), self._config.token, "EXECUTOR", self._config.tls
                )
                lost: asyncio.Future[CampanileError] = self._loop.create_future()
                self._up(link, connection, welcome)
                connection.listen(
                    lambda message, c=connection: self._heard(link, c, message),  # type: ignore[misc]
                    lambda error, lost=lost: lost.done() or lost.set_result(error),  # type: ignore[misc]
                )
                try:
                    error = await lost
                finally:
                    connection.close(connection_lost(connection.address, "the executor ended"))
            except CampanileError as why:
                error = why
            self._down(link, error)
            if self._loop.time() - begun > _GOOD_SEC:
                wait_ms = limits.RECONNECT_MIN_MS
            await asyncio.sleep(jittered_sec(wait_ms))
            wait_ms = min(wait_ms * 2, limits.RECONNECT_MAX_MS)

    async def _tick_on(self) -> None:
        while True:
            self._tick()
            self._turn()
            await asyncio.sleep(limits.TICK_MS / 1000)

    def _wake(self) -> None:
        """Sends what there is, once for all that happens in this turn of the loop."""
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_is_due = False
        self._flush()
        now = Status(
            registered=sum(u.stage is Stage.READY for u in self._upstreams.values()),
            running=self._attempts.running,
            unacknowledged=self._attempts.unacknowledged,
            ended=self._bodies_ended,
            last_error=self._last_error,
        )
        if now != self._status:
            self._status = now
            self._publish(now)
        if self._is_drained():
            self._done.set()

    def _up(self, link: int, connection: Connection, welcome: Welcome) -> None:
        meeting, other = self._nodes.up(link, NodeKey(welcome.cluster_id, welcome.node))
        if meeting is Meeting.TURN_AWAY:
            error = connection_lost(
                connection.address, f"not used: {welcome.node} is connected to already, or another node"
            )
            connection.close(error)
            raise error
        if other is not None:
            # What came over the other connection is announced over this one.
            self._attempts.rehome(other, link)
            self._give_up_link(other)
        _log.info("connected to the node %s", welcome.node)
        upstream = self._upstreams[link]
        upstream.up(connection, boot_ms())
        upstream.request("executor.register", self._config.register, Asked(What.REGISTER))

    def _down(self, link: int, error: CampanileError) -> None:
        if self._nodes.is_missed(link):
            _log.info("no connection to a node: %s", error)
            self._last_error = str(error)
        else:
            _log.debug("no connection to a node that was told of: %s", error)
        self._nodes.down(link, boot_ms())
        self._upstreams[link].down()
        self._shares_changed = True
        self._wake()

    def _follow(self, now_ms: int) -> None:
        """Connects to nodes that it was told of, and lets go of those that are no more."""
        for link in self._nodes.spare():
            if self._attempts.is_home(link):
                to = self._other_of_its_cluster(link)
                # Kept until somebody else can be told of what came over it.
                if to is None:
                    continue
                self._attempts.rehome(link, to)
                self._announce_again.add(to)
            _log.info("let go of %s: its node left, or another address leads to it", self._nodes.address(link))
            self._give_up_link(link)
        for key, address in self._nodes.unmet(now_ms):
            _log.info("told of the node %s at %s", key.name, address)
            self._add(address, key)

    def _other_of_its_cluster(self, link: int) -> int | None:
        """A link that is ready to another node of the same cluster."""
        cluster = self._upstreams[link].cluster
        if cluster is None:
            return None
        others = (
            at for at, u in self._upstreams.items() if at != link and u.stage is Stage.READY and u.cluster == cluster
        )
        return next(others, None)

    def _rehome(self, now_ms: int) -> None:
        """A node that does not come back at once may be dead, and its shards on other nodes by now."""
        for link, upstream in self._upstreams.items():
            if upstream.stage is Stage.READY:
                self._down_since_ms.pop(link, None)
                continue
            down_ms = self._down_since_ms.setdefault(link, now_ms)
            if now_ms - down_ms <= limits.REHOME_MS or not self._attempts.is_home(link):
                continue
            to = self._other_of_its_cluster(link)
            if to is not None:
                _log.info("what came over a lost connection is told over another one")
                self._attempts.rehome(link, to)
                self._announce_again.add(to)

    def _heard(self, link: int, connection: Connection, message: Message) -> None:
        upstream = self._upstreams.get(link)
        # Of a connection that is gone: the node counts its assignments as not delivered when we announce what we hold.
        if upstream is None or not upstream.is_current(connection):
            return
        if isinstance(message, Answer):
            asked = upstream.answered(message.ident)
            if asked is not None:
                self._answered(link, asked, message)
        elif message.method == "executor.assign":
            self._assign(link, message.params)
        elif message.method == "executor.stop":
            self._stop(message.params.get("items"))
            self._forget(message.params.get("ended"))
        elif message.method == "executor.epochs":
            self._taken_over(link, message.params)
        elif message.method == "executor.members" and self._config.follow:
            self._nodes.told(link, message.params)
            self._follow(boot_ms())
        elif message.method == "executor.hint" and isinstance(message.params.get("waiting"), bool):
            upstream.hint = message.params["waiting"]
            self._shares_changed = True
        self._wake()

    def _learn(self, said: Mapping[str, Any]) -> None:
        self._fence.learn(int(said.get("clusterId", 0)), [(s, e) for s, e in said.get("epochs", [])])

    def _taken_over(self, link: int, said: Mapping[str, Any]) -> None:
        """The node has other nodes' shards now: it wants to be told what is held of them."""
        self._learn(said)
        self._announce_again.add(link)

    def _assign(self, link: int, params: Mapping[str, Any]) -> None:
        """An item that cannot be read is refused, not lost: the node believes that it runs."""
        items = params.get("items")
        now_ms = boot_ms()
        for item in items if isinstance(items, list) else []:
            self._upstreams[link].received(1)
            try:
                assignment = Assignment.read(item)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as why:
                _log.error("an assignment that this release cannot read: %r", why)
                try:
                    self._refuse(link, Held.read(item), failure.UNKNOWN_ASSIGNMENT, f"cannot be read: {why!r}")
                except (KeyError, TypeError) as nameless:
                    _log.error("it does not even name its run: %r", nameless)
                continue
            self._assigned(link, assignment, now_ms)

    def _assigned(self, link: int, a: Assignment, now_ms: int) -> None:
        held = a.held
        # Delivered twice: the first one counts.
        if self._attempts.holds(held.key):
            return None
        if self._draining_until_ms is not None:
            return self._refuse(link, held, failure.DRAINING, "the executor drains")
        if self._attempts.running >= self._slots:
            return self._refuse(link, held, failure.NO_SLOT, "no free slot")
        admitted = self._fence.admit(a, now_ms)
        if isinstance(admitted, Refusal):
            return self._refuse(link, held, admitted.code, admitted.message)
        if admitted:
            self._announce_again.add(link)
        handler = self._handler_of(a.action)
        if handler is None:
            message = f"this executor cannot run {a.action.get('kind')} {a.action.get('name', '')}".rstrip()
            return self._keep(link, held, wire.FAILED, failure.NO_HANDLER, message)
        self._start(link, a, handler, now_ms)
        return None

    def _start(self, link: int, a: Assignment, handler: Handling, now_ms: int) -> None:
        key = a.held.key
        ctx = Context(a, AttemptLog(self._budget, lambda: self._call(self._log_is_ready, key)))
        try:
            body = bodies.start(
                handler, ctx, self._config.bodies_loop, lambda report: self._call(self._body_ended, key, report)
            )
        except RuntimeError as error:
            # The author's loop is closed, or the system has no thread left.
            return self._keep(
                link, a.held, wire.FAILED, failure.EXECUTOR_SHUTDOWN, f"the body could not start: {error}"
            )
        self._attempts.started(key, ctx, body, link, now_ms)
        return None

    def _handler_of(self, action: Mapping[str, Any]) -> Handling | None:
        if action.get("kind") != "HANDLER":
            return None
        return self._config.handlers.get(str(action.get("name")), self._config.any_handler)

    def _call(self, method: Callable[..., None], *args: Any) -> None:
        """From a body's thread; nobody listens any more when the session has ended."""
        try:
            self._loop.call_soon_threadsafe(method, *args)
        except RuntimeError:
            _log.debug("the executor has ended")

    def _body_ended(self, key: Key, report: Report) -> None:
        self._bodies_ended += 1
        self._attempts.ended(key, report)
        self._wake()

    def _log_is_ready(self, key: Key) -> None:
        self._log_queue.append(key)
        self._wake()

    def _stop(self, items: object) -> None:
        now_ms = boot_ms()
        for item in items if isinstance(items, list) else []:
            try:
                key = Held.read(item).key
            except (KeyError, TypeError):
                continue
            self._attempts.stop(key, StopReason.CANCELED, now_ms)

    def _forget(self, items: object) -> None:
        """An operator said that these bodies have ended: their slots are free."""
        for item in items if isinstance(items, list) else []:
            try:
                key = Held.read(item).key
            except (KeyError, TypeError):
                continue
            if self._attempts.forget(key):
                _log.warning("an operator said that the body of run %s has ended; its slot is free again", key.run_id)
                self._shares_changed = True

    def _refuse(self, link: int, held: Held, code: str, message: str) -> None:
        self._keep(link, held, wire.NOT_STARTED, code, message)

    def _keep(self, link: int, held: Held, state: int, code: str, message: str) -> None:
        if self._attempts.holds(held.key):
            return
        message = cut(message, limits.ERROR_MESSAGE_BYTES)
        self._attempts.keep(held, wire.result(held, state, code=code, message=message), link)

    def _answered(self, link: int, asked: Asked, answer: Answer) -> None:
        upstream, now_ms = self._upstreams[link], boot_ms()
        said: Mapping[str, Any] = answer.result if isinstance(answer.result, dict) else {}
        error = None if answer.error is None else api_error(answer.error)
        match asked.what:
            case What.REGISTER if error is not None:
                self._give_up(link, error, "registration refused")
            case What.REGISTER:
                self._learn(said)
                upstream.cluster = int(said.get("clusterId", 0))
                upstream.stage = Stage.ANNOUNCING
                self._announce(link)
            case What.ANNOUNCE if error is not None:
                self._give_up(link, error, "announcement refused")
            case What.ANNOUNCE:
                self._stop(said.get("stop"))
                if asked.last and upstream.stage is Stage.ANNOUNCING:
                    upstream.stage = Stage.READY
                    self._attempts.resend(link)
                    if self._draining_until_ms is not None:
                        upstream.notify("executor.drain", {})
                    self._give_credit(link, now_ms)
                    self._shares_changed = True
            case What.FINISH:
                if error is not None:
                    _log.debug("results were not taken, sending them again: %s", error)
                self._finished(asked.keys, said.get("outcomes", []), now_ms)
            case What.HEARTBEAT | What.LOG:
                pass

    def _give_up(self, link: int, error: CampanileError, why: str) -> None:
        _log.warning("the node does not take this executor: %s: %s", why, error)
        self._upstreams[link].hang_up(f"{why}: {error}")

    def _finished(self, keys: tuple[Key, ...], outcomes: list[str], now_ms: int) -> None:
        """Results without an outcome are sent again."""
        for n, key in enumerate(keys):
            if n < len(outcomes) and outcomes[n] in ("d", "s"):
                self._attempts.settled(key)
            else:
                self._attempts.again(key, now_ms)

    def _tick(self) -> None:
        now_ms = boot_ms()
        self._attempts.expire(now_ms)
        self._rehome(now_ms)
        self._follow(now_ms)
        for link, upstream in self._upstreams.items():
            upstream.tick(self._attempts.running, now_ms)
            if upstream.is_out_of_contact(self._config.grace_ms, now_ms):
                self._attempts.stop_out_of_contact(link, now_ms)
            if upstream.credit_is_due(now_ms):
                self._give_credit(link, now_ms)
        if self._draining_until_ms is not None and now_ms > self._draining_until_ms and not self._forced:
            self._forced = True
            self._attempts.stop_all(StopReason.SHUTDOWN, now_ms)
            self._draining_until_ms = now_ms + self._config.grace_ms + limits.DRAIN_FLUSH_MS

    def drain(self, limit_sec: float) -> None:
        """Takes nothing new; ends when all is handed in, or `limit_sec` and a grace are over. A second call may shorten it."""
        until_ms = boot_ms() + int(limit_sec * 1000)
        if self._draining_until_ms is None or until_ms < self._draining_until_ms:
            self._draining_until_ms = until_ms
        for upstream in self._upstreams.values():
            if upstream.stage is Stage.READY:
                upstream.notify("executor.drain", {})
        self._wake()

    def _is_drained(self) -> bool:
        if self._draining_until_ms is None:
            return False
        idle = self._attempts.running == 0 and self._attempts.unacknowledged == 0
        flushed = all(upstream.is_flushed() for upstream in self._upstreams.values())
        return (idle and flushed) or (self._forced and boot_ms() > self._draining_until_ms)

    def _announce(self, link: int) -> None:
        """The complete list of what is held, in parts."""
        self._announce_again.discard(link)
        held = [item.write() for item in self._attempts.held()]
        size = limits.EXECUTOR_BATCH
        parts = [held[n : n + size] for n in range(0, len(held), size)] or [[]]
        for n, part in enumerate(parts):
            more = n + 1 < len(parts)
            asked = Asked(What.ANNOUNCE, last=not more)
            self._upstreams[link].request("executor.announce", {"held": part, "more": more}, asked)

    def _share(self, link: int, now_ms: int) -> int:
        """This link's share of the free slots."""
        if self._draining_until_ms is not None or self._attempts.unacknowledged > limits.RESULTS_WAITING:
            return 0
        free = max(self._slots - self._attempts.running, 0)
        ready = [at for at, upstream in self._upstreams.items() if upstream.stage is Stage.READY]
        # A node of an older release says nothing, and must not be left without credit.
        wanting = [self._upstreams[at].hint is not False for at in ready]
        return share(free, wanting, ready.index(link), now_ms // limits.REST_TURN_MS)

    def _credit(self, link: int, now_ms: int) -> dict[str, Any]:
        return self._upstreams[link].credit(self._share(link, now_ms), self._attempts.running / self._slots, now_ms)

    def _give_credit(self, link: int, now_ms: int) -> None:
        self._upstreams[link].notify("executor.credit", self._credit(link, now_ms))

    def _move_credit(self) -> None:
        """Gives nodes their shares anew where those have changed, first those that lose: what is free is not to be given twice."""
        now_ms = boot_ms()
        if not self._shares_changed or now_ms - self._shared_ms < limits.MOVE_CREDIT_MS:
            return
        self._shares_changed, self._shared_ms = False, now_ms
        ready = (link for link, upstream in self._upstreams.items() if upstream.stage is Stage.READY)
        moves = sorted((self._share(link, now_ms) - self._upstreams[link].given, link) for link in ready)
        for more, link in moves:
            if more:
                self._give_credit(link, now_ms)

    def _flush(self) -> None:
        """Sends what can be sent now."""
        self._flush_logs()
        for link, upstream in self._upstreams.items():
            if link in self._announce_again and upstream.stage is Stage.READY:
                self._announce(link)
            while self._attempts.has_unsent(link) and upstream.can_finish():
                batch = self._attempts.batch(link)
                if not batch.keys:
                    break
                for chunk in batch.logs:
                    upstream.notify("executor.log", chunk)
                finish = {"items": batch.items, "credit": self._credit(link, boot_ms())}
                upstream.request("executor.finish", finish, Asked(What.FINISH, keys=tuple(batch.keys)))
                # What this node's runs gave back may be another's.
                self._shares_changed |= any(u.hint is True for at, u in self._upstreams.items() if at != link)
        self._move_credit()

    def _flush_logs(self) -> None:
        for _ in range(len(self._log_queue)):
            key = self._log_queue.popleft()
            found = self._attempts.context(key)
            # Of an attempt that has ended: its result takes the rest along.
            if found is None:
                continue
            ctx, link = found
            if not self._upstreams[link].can_log():
                self._log_queue.append(key)
                continue
            piece = ctx.take_log(last=False)
            if piece:
                self._upstreams[link].request("executor.log", log_chunk(ctx, piece), Asked(What.LOG))
            if len(piece) == limits.LOG_CHUNK_BYTES:
                self._log_queue.append(key)
