"""Permutations of the controllable bits: a Feistel network, RC5-16/12/16 and Skip32."""

from typing import Protocol

MASK64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


class Cipher(Protocol):
    """An invertible function on the numbers below a size."""

    def encrypt(self, number: int) -> int:
        """Return the image of a number."""

    def decrypt(self, number: int) -> int:
        """Return the number of which this is the image."""


def mix(word: int) -> int:
    """Return a bijection of 64 bits: SplitMix64's output function."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK64
    return word ^ (word >> 31)


class Feistel:
    """A balanced network of six rounds; sizes that are no power of four walk along the cycle."""

    ROUNDS = 6

    def __init__(self, size: int, key: bytes) -> None:
        self.size = size
        self.half = max(1, -(-(size - 1).bit_length() // 2))
        starts = int.from_bytes(key[:8], "big"), int.from_bytes(key[8:16], "big")
        self.keys = []
        for number in range(1, self.ROUNDS + 1):
            add, multiply = (mix((start + number * GOLDEN) & MASK64) for start in starts)
            self.keys.append((add, multiply | 1))

    def _round(self, number: int, key: tuple[int, int]) -> int:
        product = (number + key[0]) * key[1] & MASK64
        return product >> (64 - self.half)

    def _once(self, number: int, keys: list[tuple[int, int]]) -> int:
        left, right = divmod(number, 1 << self.half)
        for key in keys:
            left, right = right, left ^ self._round(right, key)
        return (left << self.half) + right

    def encrypt(self, number: int) -> int:
        """Return the image of a number below the size."""
        number = self._once(number, self.keys)
        while number >= self.size:
            number = self._once(number, self.keys)
        return number

    def _swap(self, number: int) -> int:
        left, right = divmod(number, 1 << self.half)
        return (right << self.half) + left

    def decrypt(self, number: int) -> int:
        """Return the number of which this is the image: the rounds from the last, halves swapped."""
        while True:
            number = self._swap(self._once(self._swap(number), self.keys[::-1]))
            if number < self.size:
                return number


class RC5:
    """RC5 with words of 16 bits, as Rivest describes it in "The RC5 encryption algorithm"."""

    def __init__(self, key: bytes, rounds: int = 12) -> None:
        words = [int.from_bytes(key[i : i + 2], "little") for i in range(0, len(key), 2)]
        table = [(0xB7E1 + i * 0x9E37) & 0xFFFF for i in range(2 * rounds + 2)]
        a = b = 0
        for k in range(3 * max(len(table), len(words))):
            a = table[k % len(table)] = self._left(table[k % len(table)] + a + b, 3)
            b = words[k % len(words)] = self._left(words[k % len(words)] + a + b, a + b)
        self.table = table

    @staticmethod
    def _left(word: int, by: int) -> int:
        word, by = word & 0xFFFF, by % 16
        return ((word << by) | (word >> (16 - by))) & 0xFFFF

    @staticmethod
    def _split(number: int) -> tuple[int, int]:
        octets = number.to_bytes(4, "big")
        return int.from_bytes(octets[:2], "little"), int.from_bytes(octets[2:], "little")

    @staticmethod
    def _join(a: int, b: int) -> int:
        return int.from_bytes(a.to_bytes(2, "little") + b.to_bytes(2, "little"), "big")

    def encrypt(self, number: int) -> int:
        """Return the image of a number of 32 bits, whose octets are the block."""
        a, b = self._split(number)
        a, b = (a + self.table[0]) & 0xFFFF, (b + self.table[1]) & 0xFFFF
        for even, odd in zip(self.table[2::2], self.table[3::2]):
            a = (self._left(a ^ b, b) + even) & 0xFFFF
            b = (self._left(b ^ a, a) + odd) & 0xFFFF
        return self._join(a, b)

    def decrypt(self, number: int) -> int:
        """Return the number of which this is the image."""
        a, b = self._split(number)
        for i in range(len(self.table) // 2 - 1, 0, -1):
            b = self._left(b - self.table[2 * i + 1], -a) ^ a
            a = self._left(a - self.table[2 * i], -b) ^ b
        return self._join((a - self.table[0]) & 0xFFFF, (b - self.table[1]) & 0xFFFF)


SKIPJACK_F = bytes.fromhex(
    "a3d70983f848f6f4b321157899b1aff9e72d4d8ace4cca2e5295d91e4e3844280adf02a017f16068"
    "12b77ac3e9fa3d5396846bbaf2639a197caee5f5f7166aa239b67b0fc193811beeb41aead0912fb8"
    "55b9da853f41bfe05a58805f660bd89035d5c0a733066569450094566d989b7697fcb2c2b0fedb20"
    "e1ebd6e4dd474a1d42ed9e6e493ccd4327d207d4dec7671889cb301f8dc68faac874dcc95d5c31a4"
    "7088612c9f0d2b8750825464267d0340344b1c73d1c4fd3bccfb7fabe63e5ba5ad04239c145122f0"
    "2979717eff8c0ee20cefbc72756f37a1ecd38e628b8610e8087711be924f24c532369dcff3a6bbac"
    "5e6ca9135725b5e3bda83a0105592a46"
)


class Skip32:
    """Rose's Skip32: 24 rounds with the permutation G of Skipjack."""

    def __init__(self, key: bytes) -> None:
        self.key = key[:10]

    def _g(self, k: int, word: int) -> int:
        pair = [word >> 8, word & 0xFF]
        for i in range(4):
            pair[i % 2] ^= SKIPJACK_F[pair[1 - i % 2] ^ self.key[(4 * k + i) % 10]]
        return pair[0] << 8 | pair[1]

    def _run(self, number: int, rounds: list[int]) -> int:
        left, right = number >> 16, number & 0xFFFF
        for k in rounds:
            left, right = right ^ self._g(k, left) ^ k, left
        return right << 16 | left

    def encrypt(self, number: int) -> int:
        """Return the image of a number of 32 bits."""
        return self._run(number, list(range(24)))

    def decrypt(self, number: int) -> int:
        """Return the number of which this is the image."""
        return self._run(number, list(range(23, -1, -1)))
