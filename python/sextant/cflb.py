"""Path selectors of controllable per-flow load balancing (Detal et al., Computer Networks 57, 2013).

A source asks a :class:`Codec` for the ports or the flow label with which a flow takes a path; a monitor asks it for the
choices that routers make. The codec agrees bit by bit with Sextant's routers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from .ciphers import GOLDEN, MASK64, RC5, Cipher, Feistel, Skip32, mix

_WEAK = 0xBF58476D1CE4E5B9
_WIDTHS = {"flow_label": 20, "source_port": 16, "destination_port": 16}
RADIX_MAX = 256


class Fields(StrEnum):
    """The header fields in which a source writes the selector."""

    SOURCE_PORT = "source-port"
    FLOW_LABEL = "flow-label"
    PORTS = "ports"
    FLOW_LABEL_SOURCE_PORT = "flow-label+source-port"
    FLOW_LABEL_PORTS = "flow-label+ports"

    @property
    def parts(self) -> tuple[str, ...]:
        """The attributes of a Packet that are controllable, from the most significant bit."""
        label = ("flow_label",) if "flow-label" in self else ()
        if self.endswith("source-port"):
            return (*label, "source_port")
        return (*label, "source_port", "destination_port") if self.endswith("ports") else label

    @property
    def bits(self) -> int:
        """X, the number of controllable bits."""
        return sum(_WIDTHS[part] for part in self.parts)


class Choice(StrEnum):
    """How a router comes to its next hop."""

    CONTROLLED = "controlled"
    BEYOND = "beyond the next hops"
    OUT_OF_RANGE = "no selector"
    UNREADABLE = "no controllable fields"


@dataclass(frozen=True)
class Packet:
    """What a router reads of a packet. Ports are None in fragments and other protocols."""

    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    protocol: int = 6
    source_port: int | None = None
    destination_port: int | None = None
    flow_label: int = 0
    hop_limit: int = 64

    @classmethod
    def of(cls, source: str, destination: str, **rest: int | None) -> "Packet":
        """Make a packet from addresses as text."""
        return cls(ip_address(source), ip_address(destination), **rest)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Hop:
    """A choice on a path: who receives the packet with this hop limit takes this next hop."""

    hop_limit: int
    index: int


class Codec:
    """Encodes paths and decodes routers' choices for one network."""

    def __init__(
        self,
        fields: Fields | str,
        radix: int,
        key: bytes,
        cipher: str = "feistel",
        length: int = 0,
        modulo: bool = False,
    ) -> None:
        """Check the parameters. A length of 0 takes as many positions as the fields hold."""
        self.fields = Fields(fields)
        if not 2 <= radix <= RADIX_MAX:
            raise ValueError(f"radix {radix}: it has to be 2 to {RADIX_MAX}")
        if len(key) != 16:
            raise ValueError(f"a key of {len(key)} octets: it has to have 16")
        greatest = 0
        while radix ** (greatest + 1) <= 1 << self.fields.bits:
            greatest += 1
        if not 0 <= length <= greatest:
            raise ValueError(f"length {length}: the fields hold 1 to {greatest} digits")
        self.radix, self.length, self.modulo = radix, length or greatest, modulo
        self._tops: int = (1 << self.fields.bits) // radix**self.length
        self.cipher = self._cipher(cipher, key)
        self._seed = mix(int.from_bytes(key[:8], "big") ^ mix(int.from_bytes(key[8:], "big")))

    def _cipher(self, name: str, key: bytes) -> Cipher:
        if name == "feistel":
            return Feistel(1 << self.fields.bits, key)
        if name not in ("rc5", "skip32"):
            raise ValueError(f"cipher {name!r}: it is one of feistel, rc5, skip32")
        if self.fields.bits != 32:
            raise ValueError(f"{name} has blocks of 32 bits, the fields {self.fields.bits}")
        if name == "rc5":
            return RC5(key)
        return Skip32(key)

    def _hash(self, packet: Packet, rest: int) -> int:
        packed = packet.source.packed + packet.destination.packed
        state = self._seed
        for at in range(0, len(packed), 8):
            state = (state ^ int.from_bytes(packed[at : at + 8], "big")) * _WEAK & MASK64
            state ^= state >> 32
        return mix(state ^ rest)

    def _uncontrolled(self, packet: Packet) -> int:
        if self.fields is Fields.FLOW_LABEL:
            return self._hash(packet, 0)
        free = 0 if "destination_port" in self.fields.parts else packet.destination_port or 0
        return self._hash(packet, packet.protocol | free << 8)

    @staticmethod
    def _fallback(state: int, value: int, router: int) -> int:
        return mix(((state ^ value) + router * GOLDEN) & MASK64) >> 32

    def read(self, packet: Packet) -> int | None:
        """Return the controllable fields as one number, or None if the packet lacks one."""
        label = "flow_label" in self.fields.parts
        if label and packet.source.version == 4:
            return None
        if self.fields is Fields.FLOW_LABEL and packet.flow_label == 0:
            return None
        value = 0
        for part in self.fields.parts:
            field: int | None = getattr(packet, part)
            if field is None:
                return None
            value = value << _WIDTHS[part] | field
        return value

    def write(self, packet: Packet, value: int) -> Packet:
        """Return the packet with these controllable fields."""
        changes: dict[str, Any] = {}
        for part in reversed(self.fields.parts):
            value, changes[part] = divmod(value, 1 << _WIDTHS[part])
        return replace(packet, **changes)

    def _fixed(self, packet: Packet, path: Sequence[Hop]) -> dict[int, int]:
        if "flow_label" in self.fields.parts and packet.source.version == 4:
            raise ValueError("IPv4 packets have no flow label: control their ports")
        spread = (self._uncontrolled(packet) >> 32) % self.radix
        fixed: dict[int, int] = {}
        for hop in path:
            if not 0 <= hop.index < self.radix:
                raise ValueError(f"next hop {hop.index}: radix {self.radix} names 0 to {self.radix - 1}")
            position, digit = hop.hop_limit % self.length, (hop.index + spread) % self.radix
            if fixed.setdefault(position, digit) != digit:
                raise ValueError(f"hop limit {hop.hop_limit}: position {position} is taken")
        return fixed

    def variants(self, path: Sequence[Hop]) -> int:
        """Return how many selectors name a path."""
        free = self.length - len({h.hop_limit % self.length for h in path})
        return int(self.radix**free) * self._tops

    def encode(self, packet: Packet, path: Sequence[Hop], variant: int = 0) -> int:
        """Return the controllable fields with which the packet takes the path (Algorithm 2)."""
        fixed = self._fixed(packet, path)
        if not 0 <= variant < self.variants(path):
            raise ValueError(f"selector {variant}: the path has {self.variants(path)}")
        selector = 0
        for position in range(self.length):
            if position in fixed:
                digit = fixed[position]
            else:
                variant, digit = divmod(variant, self.radix)
            selector += digit * self.radix**position
        return self.cipher.encrypt(selector + variant * self.radix**self.length)

    def selectors(self, packet: Packet, path: Sequence[Hop], first: int = 0) -> Iterator[Packet]:
        """Yield the packet with all fields that take the path, without ports and labels of 0."""
        count = self.variants(path)
        for i in range(count):
            value = self.encode(packet, path, (first + i) % count)
            found = self.write(packet, value)
            if all(getattr(found, part) for part in self.fields.parts):
                yield found

    def digit(self, packet: Packet, router: int) -> tuple[int, Choice, int]:
        """Return what the selector says at a router, how, and the hash for the other case."""
        value = self.read(packet)
        if value is None:
            source, destination = packet.source_port, packet.destination_port
            rest = packet.protocol
            if source is not None and destination is not None:
                rest |= destination << 8 | source << 24
            return 0, Choice.UNREADABLE, self._fallback(self._hash(packet, rest), 0, router)
        state = self._uncontrolled(packet)
        chosen = self._fallback(state, value, router)
        selector = self.cipher.decrypt(value)
        if selector >= self._tops * self.radix**self.length and not self.modulo:
            return 0, Choice.OUT_OF_RANGE, chosen
        raw = selector // self.radix ** (packet.hop_limit % self.length)
        return (raw - (state >> 32)) % self.radix, Choice.CONTROLLED, chosen

    def next_hop(self, packet: Packet, router: int, up: Sequence[bool]) -> tuple[int, Choice]:
        """Return the next hop that a router takes of those that are up, of equal weights (Algorithm 1)."""
        digit, choice, chosen = self.digit(packet, router)
        if choice is Choice.CONTROLLED and digit < len(up) and up[digit]:
            return digit, choice
        if choice is Choice.CONTROLLED:
            choice = Choice.BEYOND
        alive = [index for index, is_up in enumerate(up) if is_up]
        if not alive:
            return -1, choice
        return next(
            (
                index
                for rank, index in enumerate(alive, 1)
                if chosen < min(MASK32, -(-(rank << 32) // len(alive)))
            ),
            alive[-1],
        ), choice


MASK32 = (1 << 32) - 1
