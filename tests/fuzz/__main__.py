"""``python -m tests.fuzz``: random programs, for as long as wanted."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.properties import PROPERTIES
from tests.fuzz.running import COMPILED_EVERY, checked, reduced, run
from tests.fuzz.writing import seeded


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--programs", type=int, help="how many, if the time allows")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--compiled-every", type=int, default=COMPILED_EVERY, metavar="N")
    parser.add_argument("--most", type=int, default=20, help="failures after which to stop")
    parser.add_argument("--replay", type=int, metavar="SEED", help="one program, all properties")
    parser.add_argument("--property", choices=PROPERTIES, action="append")
    args = parser.parse_args()
    if args.replay is not None:
        print(seeded(args.replay))
        bad = list(checked(args.replay, args.property or list(PROPERTIES)))
        for name, message in bad:
            print(reduced(args.replay, name, message, args.seconds))
        print("failed: " + ", ".join(name for name, _ in bad) if bad else "all properties hold")
        return bool(bad)
    done, found = run(
        args.seed, args.programs, args.seconds, args.jobs, args.compiled_every, args.most
    )
    print(f"{done} programs, {len(found)} failures")
    return bool(found)


sys.exit(main())
