"""The calculus, which knows no particular primitive: avals, primitives, traces, programs."""
