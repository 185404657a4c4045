"""Digests of bytes, without OpenSSL: to load its library takes as long as a small program.

BLAKE2b is Python's own, and as fast without it. `hashlib`, which has it as well, loads OpenSSL.
"""

try:
    from _blake2 import blake2b
except ImportError:  # another Python
    from hashlib import blake2b

_BYTES = 32


def digest(content: bytes) -> str:
    """BLAKE2b of 32 bytes, as 64 hexadecimal digits."""
    return blake2b(content, digest_size=_BYTES).hexdigest()
