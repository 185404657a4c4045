"""The two kinds of native code that are written by hand: the executor and the matrix product.

Both are LLVM assembly, compiled once per machine and kept in the disk cache like any kernel. The
layouts of their tables are part of the kernel ABI (`docs/compiler.md`).
"""

from __future__ import annotations

EXECUTOR_SYMBOL = "fg_run"

_EXECUTOR = """
; int64 run(int64* slots, int64* table, int64 n_objects)
;   slots[4 + k], k < n_objects: address of a NumPy array object, replaced by that of its data.
;   table: number of steps; for each step (kernel address, word offset of its arguments); arguments.
;   Returns 0, or 1 + the index of the step that failed; slots[0] is its error code.
define i64 @fg_run(ptr %slots, ptr %table, i64 %n_objects) nounwind {
entry:
  %some = icmp sgt i64 %n_objects, 0
  br i1 %some, label %object, label %count

object:
  %k = phi i64 [ 0, %entry ], [ %k.next, %object ]
  %index = add nsw i64 %k, 4
  %slot = getelementptr inbounds i64, ptr %slots, i64 %index
  %array = load ptr, ptr %slot
  %field = getelementptr inbounds i8, ptr %array, i64 DATA_OFFSET
  %data = load i64, ptr %field
  store i64 %data, ptr %slot
  %k.next = add nsw i64 %k, 1
  %more.objects = icmp slt i64 %k.next, %n_objects
  br i1 %more.objects, label %object, label %count

count:
  %steps = load i64, ptr %table
  %any = icmp sgt i64 %steps, 0
  br i1 %any, label %step, label %done

step:
  %i = phi i64 [ 0, %count ], [ %i.next, %succeeded ]
  %twice = shl nsw i64 %i, 1
  %kernel.word = or disjoint i64 %twice, 1
  %kernel.place = getelementptr inbounds i64, ptr %table, i64 %kernel.word
  %kernel = load ptr, ptr %kernel.place
  %offset.word = add nsw i64 %twice, 2
  %offset.place = getelementptr inbounds i64, ptr %table, i64 %offset.word
  %offset = load i64, ptr %offset.place
  %args = getelementptr inbounds i64, ptr %table, i64 %offset
  %code = call i64 %kernel(ptr %slots, ptr %args)
  %i.next = add nsw i64 %i, 1
  %failed = icmp ne i64 %code, 0
  br i1 %failed, label %stop, label %succeeded

succeeded:
  %more.steps = icmp slt i64 %i.next, %steps
  br i1 %more.steps, label %step, label %done

stop:
  store i64 %code, ptr %slots
  ret i64 %i.next

done:
  ret i64 0
}
"""

GEMM_WORDS = (
    "begin end function m n k lda ldb ldc trans_a trans_b "
    "slot_a offset_a stride_a slot_b offset_b stride_b slot_c offset_c stride_c accumulate"
).split()
"""Meaning of the words of a product's arguments, in order.

``C[b] = op(A[b]) @ op(B[b])`` for ``begin <= b < end``, all row-major: ``op(A)`` is ``m x k``, stored
as ``k x m`` where ``trans_a`` is 1. ``ld*`` are distances of rows in elements, ``offset_*`` and
``stride_*`` (distance of matrices of a batch) are bytes, ``function`` is the address of BLAS's gemm.
``accumulate`` is 1 to add to C, else C's old values are ignored.
"""

# A row-major product is the column-major product of the transposes: B comes first.
_GEMM = """
define i64 @SYMBOL(ptr noalias %slots, ptr noalias %args) nounwind {
entry:
  %m = alloca i32
  %n = alloca i32
  %k = alloca i32
  %lda = alloca i32
  %ldb = alloca i32
  %ldc = alloca i32
  %ta = alloca i8
  %tb = alloca i8
  %alpha = alloca [2 x REAL]
  %beta = alloca [2 x REAL]
READS
  store i32 %m.32, ptr %m
  store i32 %n.32, ptr %n
  store i32 %k.32, ptr %k
  ; A matrix of one row may come with any row distance, but BLAS checks it.
  %a.t = icmp ne i64 %trans_a.w, 0
  %b.t = icmp ne i64 %trans_b.w, 0
  %a.columns = select i1 %a.t, i32 %m.32, i32 %k.32
  %b.columns = select i1 %b.t, i32 %k.32, i32 %n.32
  %lda.1 = call i32 @llvm.smax.i32(i32 %lda.32, i32 %a.columns)
  %lda.2 = call i32 @llvm.smax.i32(i32 %lda.1, i32 1)
  store i32 %lda.2, ptr %lda
  %ldb.1 = call i32 @llvm.smax.i32(i32 %ldb.32, i32 %b.columns)
  %ldb.2 = call i32 @llvm.smax.i32(i32 %ldb.1, i32 1)
  store i32 %ldb.2, ptr %ldb
  %ldc.1 = call i32 @llvm.smax.i32(i32 %ldc.32, i32 %n.32)
  %ldc.2 = call i32 @llvm.smax.i32(i32 %ldc.1, i32 1)
  store i32 %ldc.2, ptr %ldc
  %ta.c = select i1 %a.t, i8 84, i8 78
  %tb.c = select i1 %b.t, i8 84, i8 78
  store i8 %ta.c, ptr %ta
  store i8 %tb.c, ptr %tb
  store [2 x REAL] [REAL 1.0, REAL 0.0], ptr %alpha
  %adds = icmp ne i64 %accumulate.w, 0
  %beta.v = select i1 %adds, REAL 1.0, REAL 0.0
  store REAL %beta.v, ptr %beta
  %beta.im = getelementptr inbounds [2 x REAL], ptr %beta, i64 0, i64 1
  store REAL 0.0, ptr %beta.im
  %a.slot = getelementptr inbounds i64, ptr %slots, i64 %slot_a.w
  %b.slot = getelementptr inbounds i64, ptr %slots, i64 %slot_b.w
  %c.slot = getelementptr inbounds i64, ptr %slots, i64 %slot_c.w
  %a.base = load ptr, ptr %a.slot
  %b.base = load ptr, ptr %b.slot
  %c.base = load ptr, ptr %c.slot
  %gemm = inttoptr i64 %function.w to ptr
  %rows = icmp sgt i64 %m.w, 0
  %columns = icmp sgt i64 %n.w, 0
  %matrices = icmp slt i64 %begin.w, %end.w
  %nonempty = and i1 %rows, %columns
  %some = and i1 %nonempty, %matrices
  br i1 %some, label %product, label %done

product:
  %i = phi i64 [ %begin.w, %entry ], [ %i.next, %product ]
  %a.step = mul nsw i64 %i, %stride_a.w
  %b.step = mul nsw i64 %i, %stride_b.w
  %c.step = mul nsw i64 %i, %stride_c.w
  %a.at = add nsw i64 %a.step, %offset_a.w
  %b.at = add nsw i64 %b.step, %offset_b.w
  %c.at = add nsw i64 %c.step, %offset_c.w
  %a = getelementptr inbounds i8, ptr %a.base, i64 %a.at
  %b = getelementptr inbounds i8, ptr %b.base, i64 %b.at
  %c = getelementptr inbounds i8, ptr %c.base, i64 %c.at
  call void %gemm(ptr %tb, ptr %ta, ptr %n, ptr %m, ptr %k, ptr %alpha, ptr %b, ptr %ldb,
                  ptr %a, ptr %lda, ptr %beta, ptr %c, ptr %ldc)
  %i.next = add nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %end.w
  br i1 %more, label %product, label %done

done:
  ret i64 0
}
declare i32 @llvm.smax.i32(i32, i32)
"""


def executor_assembly(data_offset: int) -> str:
    """The executor; ``data_offset`` is where an array object keeps the address of its data."""
    return _EXECUTOR.replace("DATA_OFFSET", str(data_offset))


def gemm_symbol(letter: str) -> str:
    return f"fg_{letter}gemm"


def gemm_assembly(letter: str) -> str:
    """The batched matrix product for BLAS's type ``letter``: s, d, c or z."""
    reads = [
        line
        for i, word in enumerate(GEMM_WORDS)
        for line in (
            f"  %{word}.p = getelementptr inbounds i64, ptr %args, i64 {i}",
            f"  %{word}.w = load i64, ptr %{word}.p",
        )
    ]
    reads += [f"  %{w}.32 = trunc i64 %{w}.w to i32" for w in ("m", "n", "k", "lda", "ldb", "ldc")]
    return (
        _GEMM.replace("SYMBOL", gemm_symbol(letter))
        .replace("READS", "\n".join(reads))
        .replace("REAL", "float" if letter in "sc" else "double")
    )
