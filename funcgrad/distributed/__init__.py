"""The same program on many processes, which meet in collectives: named axes across MPI ranks.

`spmd` and `mesh` bind names of axes to processes; inside, the collectives of `funcgrad.lax` work
along these names as they do along axes of `vmap`. A program is started by ``mpiexec -n 4 python
program.py``. MPI comes with the extra ``funcgrad[mpi]``; a program that was not started by MPI is
one process and needs none.
"""

from typing import TYPE_CHECKING

from funcgrad.base.namespaces import present
from funcgrad.distributed.axes import mesh, spmd
from funcgrad.distributed.exchange import (
    broadcast,
    echo,
    gather,
    is_main,
    local_keys,
    local_range,
    rank,
    scatter,
    shard,
    size,
)
from funcgrad.distributed.flat_shards import FlatShard, flat_shard, fully_sharded, unshard
from funcgrad.distributed.neighbours import halo, pipeline

if TYPE_CHECKING:
    from funcgrad.distributed.checkpoints import load, save
    from funcgrad.distributed.optimizers import sharded, top_k_mean
    from funcgrad.distributed.waiting import waits

__all__ = [
    "FlatShard", "broadcast", "echo", "flat_shard", "fully_sharded", "gather", "halo", "is_main",
    "load", "local_keys", "local_range", "mesh", "pipeline", "rank", "save", "scatter", "shard",
    "sharded", "size", "spmd", "top_k_mean", "unshard", "waits",
]  # fmt: skip

present(__name__)
