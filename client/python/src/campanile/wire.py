"""One open connection: a socket, its framing, and the hello. It knows nothing of calls and attempts; who opens it does."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, cast

import msgpack

from campanile import limits
from campanile.errors import CampanileError, api_error, connection_lost, protocol_error
from campanile.shapes import read
from campanile.tls import reason, split
from campanile.views import Welcome

PROTOCOL: Final = 1
"""Highest version of the protocol that this release speaks."""
_HELLO_ID: Final = 0
"""Id of the hello; all others count from 1."""
ID_MAX: Final = (1 << 32) - 1


def _client_name() -> str:
    try:
        return f"campanile-python/{version('campanile')}"
    except PackageNotFoundError:
        return "campanile-python"


@dataclass(frozen=True, slots=True)
class Answer:
    """To request `ident`: exactly one of the two is None, or both for an empty result."""

    ident: int
    error: Any
    result: Any


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification."""

    method: str
    params: dict[str, Any]


Message = Answer | Notice


def request(ident: int, method: str, params: dict[str, Any], facts: dict[str, str] | None = None) -> bytes:
    """The bytes of a request; `facts` are what the caller says of the call beside its params."""
    given = [params, facts] if facts else [params]
    return cast(bytes, msgpack.packb([0, ident, method, given], use_bin_type=True))


def notification(method: str, params: dict[str, Any]) -> bytes:
    """The bytes of a notification."""
    return cast(bytes, msgpack.packb([2, method, [params]], use_bin_type=True))


def _parse(message: object) -> Message | None:
    """None for what a newer node may say and we need not know."""
    match message:
        case [1, int(ident), error, result]:
            return Answer(ident, error, result)
        case [2, str(method), [dict(params), *_]]:
            return Notice(method, params)
        case [2, str(method), *_]:
            return Notice(method, {})
        case [0, int(), str(), *_]:
            return None
        case _:
            raise protocol_error(f"{type(message).__name__} is not a message of msgpack-rpc")


class Connection(asyncio.Protocol):
    """Hands every message to `heard`, and its end, once, to `lost`. Messages before `listen` wait for it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.closed_with: CampanileError | None = None
        self.heard_at = asyncio.get_running_loop().time()
        """When the last byte came, on the loop's clock."""
        self._transport: asyncio.Transport | None = None
        self._unpacker = msgpack.Unpacker(
            raw=False,
            strict_map_key=False,
            max_buffer_size=limits.FRAME_BYTES + 64,
            max_array_len=limits.FRAME_ITEMS,
            max_map_len=limits.FRAME_ITEMS,
        )
        self._early: list[Message] = []
        self._heard: Callable[[Message], None] = self._early.append
        self._lost: Callable[[CampanileError], None] = lambda _: None
        self._room = asyncio.Event()
        self._room.set()

    def listen(self, heard: Callable[[Message], None], lost: Callable[[CampanileError], None]) -> None:
        """From now on messages go to `heard`; `lost` is called once, also when it is lost already."""
        self._heard, self._lost = heard, lost
        early, self._early = self._early, []
        for message in early:
            heard(message)
        if self.closed_with is not None:
            lost(self.closed_with)

    def keep(self, early: list[Message]) -> None:
        """Until the next `listen` messages are kept, after `early` ones."""
        self._early, self._lost = early, lambda _: None
        self._heard = early.append

    @property
    def is_open(self) -> bool:
        """Whether it can be written to."""
        return self.closed_with is None

    def send(self, frame: bytes) -> None:
        """Writes now, or leaves it to the socket's buffer; nothing when the connection is lost."""
        if self._transport is not None and self.closed_with is None:
            self._transport.write(frame)

    def unsent_bytes(self) -> int:
        """Bytes that the socket has not taken yet."""
        return 0 if self._transport is None or not self.is_open else self._transport.get_write_buffer_size()

    async def room(self) -> None:
        """Waits until fewer than `UNSENT_BYTES` are unsent, or the connection is lost."""
        await self._room.wait()

    def close(self, why: CampanileError) -> None:
        """Ends it at once; `lost` is told why."""
        if self.closed_with is None:
            self.closed_with = why
            self._room.set()
            if self._transport is not None:
                self._transport.abort()
            self._lost(why)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Of asyncio."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=limits.UNSENT_BYTES)

    def data_received(self, data: bytes) -> None:
        """Of asyncio."""
        self.heard_at = asyncio.get_running_loop().time()
        try:
            self._unpacker.feed(data)
            for raw in self._unpacker:
                message = _parse(raw)
                if message is not None and self.is_open:
                    self._take(message)
        except CampanileError as error:
            self.close(error)
        except (ValueError, msgpack.UnpackException, RecursionError) as error:
            self.close(protocol_error(f"{self.address} does not speak MessagePack: {error or type(error).__name__}"))

    def _take(self, message: Message) -> None:
        if isinstance(message, Notice) and message.method == "session.error":
            raise api_error(message.params)
        self._heard(message)

    def connection_lost(self, exc: Exception | None) -> None:
        """Of asyncio."""
        self.close(connection_lost(self.address, exc or "closed by the node"))

    def pause_writing(self) -> None:
        """Of asyncio."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Of asyncio."""
        self._room.set()


async def open_connection(
    address: str, token: str, role: str, tls: ssl.SSLContext | None = None
) -> tuple[Connection, Welcome]:
    """Connects to `host:port` and says hello as `CALLER` or `EXECUTOR`.

    `tls` is for addresses that begin with `tls://`, and those that say nothing of it.
    ConnectionLostError when nobody answers within `CONNECT_MS`, ApiError when the node refuses the token, ProtocolError when
    it speaks something else.
    """
    host, port, tls = split(address, tls)
    connection = None
    try:
        async with asyncio.timeout(limits.CONNECT_MS / 1000):
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(lambda: Connection(address), host, port, ssl=tls)
            return connection, await _hello(connection, token, role)
    except TimeoutError:
        error = connection_lost(address, f"no hello within {limits.CONNECT_MS} ms")
    except ssl.SSLError as why:
        error = connection_lost(address, reason(host, why))
    except OSError as why:
        error = connection_lost(address, why)
    except BaseException as why:
        if connection is not None:
            connection.close(connection_lost(address, why))
        raise
    if connection is not None:
        connection.close(error)
    raise error


async def _hello(connection: Connection, token: str, role: str) -> Welcome:
    answered: asyncio.Future[Welcome] = asyncio.get_running_loop().create_future()
    early: list[Message] = []

    def heard(message: Message) -> None:
        if answered.done():
            early.append(message)
        elif isinstance(message, Answer) and message.ident == _HELLO_ID:
            if message.error is not None:
                answered.set_exception(api_error(message.error))
                return
            welcome = read(Welcome, message.result)
            if not 1 <= welcome.protocol <= PROTOCOL:
                raise protocol_error(f"the node speaks version {welcome.protocol}, this client {PROTOCOL}")
            answered.set_result(welcome)

    def lost(error: CampanileError) -> None:
        if not answered.done():
            answered.set_exception(error)

    connection.listen(heard, lost)
    hello = {"protocol": PROTOCOL, "token": token, "role": role, "client": _client_name()}
    connection.send(request(_HELLO_ID, "session.hello", hello))
    welcome = await answered
    connection.keep(early)
    return welcome
