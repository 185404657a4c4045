"""Digests of bytes."""

from hashlib import blake2b

_BYTES = 32


def digest(content: bytes) -> str:
    """BLAKE2b of 32 bytes, as 64 hexadecimal digits."""
    return blake2b(content, digest_size=_BYTES).hexdigest()
