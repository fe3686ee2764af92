"""TLS to nodes: whose certificates are believed, and which addresses it is for."""

import os
import ssl
from collections.abc import Sequence
from typing import Final, TypeAlias

Tls: TypeAlias = bool | str | os.PathLike[str] | ssl.SSLContext
"""True: the CAs that this machine trusts. A path: the CAs in that PEM file, and no others. A context: whatever `ssl` can do."""

_SECURE: Final = "tls://"
_PLAIN: Final = "tcp://"


def context_for(addresses: Sequence[str], tls: Tls | None) -> ssl.SSLContext | None:
    """What these addresses need: as given, else the machine's CAs when one of them begins with `tls://`.

    ValueError for a CA file that cannot be read, and for what is no address.
    """
    secure = [_parse(address)[2] for address in addresses]
    if isinstance(tls, ssl.SSLContext):
        return tls
    if tls is None or isinstance(tls, bool):
        return ssl.create_default_context() if tls or True in secure else None
    try:
        return ssl.create_default_context(cafile=os.fspath(tls))
    except OSError as why:
        # ssl's own errors are among them.
        raise ValueError(
            f"CA file {os.fspath(tls)}: {why}; name a PEM file with the certificate of the node's CA"
        ) from why


def split(address: str, tls: ssl.SSLContext | None) -> tuple[str, int, ssl.SSLContext | None]:
    """Host, port and context of `host:port`, `tls://host:port` or `tcp://host:port`; the first is TLS where TLS was set up."""
    host, port, secure = _parse(address)
    if secure and tls is None:
        # Never in clear what was asked to be secret.
        tls = ssl.create_default_context()
    return host, port, None if secure is False else tls


def _parse(address: str) -> tuple[str, int, bool | None]:
    """Host, port, and whether it is TLS; None when the address does not say."""
    secure = True if address.startswith(_SECURE) else False if address.startswith(_PLAIN) else None
    at = address.removeprefix(_SECURE).removeprefix(_PLAIN)
    host, _, port = at.rpartition(":")
    if "://" in at or not host or not port.isdecimal():
        raise ValueError(f"{address!r} is not HOST:PORT or tls://HOST:PORT")
    return host.strip("[]"), int(port), secure


def reason(host: str, why: ssl.SSLError) -> str:
    """Why a handshake failed, for people."""
    if isinstance(why, ssl.SSLCertVerificationError):
        said = why.verify_message
        if "mismatch" in said:
            return f"TLS: the node's certificate does not name {host}; call the node by a name that it has"
        # The last: a CA of the same name, made anew.
        if "issuer" in said or "self" in said or "signature failure" in said:
            return (
                f"TLS: the node's certificate is not of a CA that this client trusts ({said}); name the right CA file"
            )
        return f"TLS: the node's certificate is refused: {said}"
    if why.reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG"}:
        return "TLS: the other side does not speak TLS; if the node serves in clear there, leave tls:// and the CA file out"
    return f"TLS: {why}"
