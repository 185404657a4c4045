"""The transformations as users call them: arguments checked, pytrees in, pytrees out."""

from funcgrad.api.meanings import MEANINGS
from funcgrad.base.signatures import share

share(__name__, MEANINGS)
