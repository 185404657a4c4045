"""The native code that is written by hand: the executor, loops and branches, matrix products.

All of it is LLVM assembly, compiled once per machine and kept in the disk cache like any kernel.
The layouts of the tables are part of the kernel ABI (`docs/compiler.md`).
"""

from __future__ import annotations

import platform
import re
import sys

from funcgrad.compiler.abi import (
    BRANCH_WORDS,
    BY_FLAG,
    BY_INFO,
    BY_RESULT,
    CONTROL_SLOT,
    CONTROL_WORDS,
    DEADLINE_SLOT,
    FIRST_SLOT,
    FOREIGN_WORDS,
    GEMM_WORDS,
    INTERRUPTED,
    LEAST_ARGUMENTS,
    LIBRARY_WORDS,
    LOOK_SLOT,
    LOOKS_EVERY,
    LOOP_WORDS,
    MOST_ARGUMENTS,
    MOST_PLACES,
    NEXT_SLOT,
    OVERLAP,
    OWNER_SLOT,
    PLACE,
    PLACE_OF_WORD,
    PLACES,
    RAISED_SLOT,
    REFUSED,
    STOP_SLOT,
    TIMED_OUT,
)

EXECUTOR_SYMBOL = "fg_run"

_EXECUTOR = """
; int64 run(int64* slots, int64* table, int64 n_objects)
;   slots[FIRST_SLOT + k], k < n_objects: address of a Python object, replaced by that of its data.
;   table: number of steps; number of guarded objects; word offset of the guards; whether
;   subnormal numbers are zero while the steps run (on processors that can); for each step
;   (kernel address, word offset of its arguments); arguments; guards.
;   A guard: address of the type, address of the dtype, flags that must be set, number of axes,
;   lengths. The first objects must be arrays that agree with their guards; others are not checked.
;   Returns 0; 1 + the index of the step that failed, with its error code in slots[0]; or, before
;   anything has run, -1 - the index of the first object that does not agree.
define i64 @fg_run(ptr %slots, ptr %table, i64 %n_objects) nounwind {
entry:
  %objects = getelementptr inbounds i64, ptr %slots, i64 FIRST_SLOT
  %some = icmp sgt i64 %n_objects, 0
  br i1 %some, label %header, label %count

header:
  %guarded.place = getelementptr inbounds i64, ptr %table, i64 1
  %guarded = load i64, ptr %guarded.place
  %guards.place = getelementptr inbounds i64, ptr %table, i64 2
  %guards.offset = load i64, ptr %guards.place
  %guards = getelementptr inbounds i64, ptr %table, i64 %guards.offset
  %any.guarded = icmp sgt i64 %guarded, 0
  br i1 %any.guarded, label %guard, label %object

guard:
  %g = phi i64 [ 0, %header ], [ %g.next, %agrees ]
  %at = phi ptr [ %guards, %header ], [ %at.next, %agrees ]
  %g.place = getelementptr inbounds i64, ptr %objects, i64 %g
  %candidate = load ptr, ptr %g.place
  %type.place = getelementptr inbounds i8, ptr %candidate, i64 CLASS_OFFSET
  %type = load i64, ptr %type.place
  %type.expected = load i64, ptr %at
  %is.array = icmp eq i64 %type, %type.expected
  br i1 %is.array, label %check.fields, label %differs

check.fields:
  %dtype.place = getelementptr inbounds i8, ptr %candidate, i64 DTYPE_OFFSET
  %dtype = load i64, ptr %dtype.place
  %dtype.at = getelementptr inbounds i64, ptr %at, i64 1
  %dtype.expected = load i64, ptr %dtype.at
  %is.dtype = icmp eq i64 %dtype, %dtype.expected
  %flags.place = getelementptr inbounds i8, ptr %candidate, i64 FLAGS_OFFSET
  %flags = load i32, ptr %flags.place
  %flags.at = getelementptr inbounds i64, ptr %at, i64 2
  %flags.expected.64 = load i64, ptr %flags.at
  %flags.expected = trunc i64 %flags.expected.64 to i32
  %flags.relevant = and i32 %flags, %flags.expected
  %is.behaved = icmp eq i32 %flags.relevant, %flags.expected
  %ndim.place = getelementptr inbounds i8, ptr %candidate, i64 NDIM_OFFSET
  %ndim.32 = load i32, ptr %ndim.place
  %ndim = sext i32 %ndim.32 to i64
  %ndim.at = getelementptr inbounds i64, ptr %at, i64 3
  %ndim.expected = load i64, ptr %ndim.at
  %is.ndim = icmp eq i64 %ndim, %ndim.expected
  %lengths.place = getelementptr inbounds i8, ptr %candidate, i64 SHAPE_OFFSET
  %lengths = load ptr, ptr %lengths.place
  %lengths.expected = getelementptr inbounds i64, ptr %at, i64 4
  %ok.1 = and i1 %is.dtype, %is.behaved
  %ok = and i1 %ok.1, %is.ndim
  br i1 %ok, label %axis, label %differs

axis:
  %a = phi i64 [ 0, %check.fields ], [ %a.next, %same.length ]
  %is.last = icmp eq i64 %a, %ndim
  br i1 %is.last, label %agrees, label %length

length:
  %length.place = getelementptr inbounds i64, ptr %lengths, i64 %a
  %length.found = load i64, ptr %length.place
  %length.at = getelementptr inbounds i64, ptr %lengths.expected, i64 %a
  %length.expected = load i64, ptr %length.at
  %is.length = icmp eq i64 %length.found, %length.expected
  br i1 %is.length, label %same.length, label %differs

same.length:
  %a.next = add nsw i64 %a, 1
  br label %axis

agrees:
  %at.next = getelementptr inbounds i64, ptr %lengths.expected, i64 %ndim
  %g.next = add nsw i64 %g, 1
  %more.guards = icmp slt i64 %g.next, %guarded
  br i1 %more.guards, label %guard, label %object

differs:
  %refused = xor i64 %g, -1
  ret i64 %refused

object:
  %k = phi i64 [ 0, %header ], [ 0, %agrees ], [ %k.next, %object ]
  %slot = getelementptr inbounds i64, ptr %objects, i64 %k
  %array = load ptr, ptr %slot
  %field = getelementptr inbounds i8, ptr %array, i64 DATA_OFFSET
  %data = load i64, ptr %field
  store i64 %data, ptr %slot
  %k.next = add nsw i64 %k, 1
  %more.objects = icmp slt i64 %k.next, %n_objects
  br i1 %more.objects, label %object, label %count

count:
  %steps = load i64, ptr %table
  %pairs = getelementptr inbounds i64, ptr %table, i64 4
  %look.place = getelementptr inbounds i64, ptr %slots, i64 LOOK_SLOT
  store ptr @fg_look, ptr %look.place
ENTER_MODE
  %any = icmp sgt i64 %steps, 0
  br i1 %any, label %step, label %done

step:
  %i = phi i64 [ 0, %count ], [ %i.next, %succeeded ]
  %pair = getelementptr inbounds { ptr, i64 }, ptr %pairs, i64 %i
  %kernel = load ptr, ptr %pair
  %offset.place = getelementptr inbounds { ptr, i64 }, ptr %pair, i64 0, i32 1
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
  br label %done

done:
  %result = phi i64 [ 0, %count ], [ 0, %succeeded ], [ %i.next, %stop ]
LEAVE_MODE
  ret i64 %result
}

; int64 look(int64* slots): the error code to stop with, or 0.
define i64 @fg_look(ptr %slots) nounwind noinline {
entry:
  %stop.place = getelementptr inbounds i64, ptr %slots, i64 STOP_SLOT
  %stop = load atomic i64, ptr %stop.place monotonic, align 8
  %stops = icmp ne i64 %stop, 0
  br i1 %stops, label %stopped, label %look
LOOK
stopped:
  ret i64 %stop

goes.on:
  ret i64 0
}
DECLARATIONS
"""

# Of the threads that run a program only its own looks at the clock, and only the main thread asks
# Python whether a signal has come, as Python itself does.
_LOOK = """
look:
  %owner.place = getelementptr inbounds i64, ptr %slots, i64 OWNER_SLOT
  %owner = load i64, ptr %owner.place
  %self = call i64 @pthread_self()
  %is.shared = icmp ne i64 %owner, 0
  %is.other = icmp ne i64 %owner, %self
  %is.worker = and i1 %is.shared, %is.other
  br i1 %is.worker, label %goes.on, label %clock

clock:
  %time = alloca { i64, i64 }
  %unknown = call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %rest.place = getelementptr inbounds i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.place
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %next.place = getelementptr inbounds i64, ptr %slots, i64 NEXT_SLOT
  %next = load i64, ptr %next.place
  %is.early = icmp slt i64 %now, %next
  br i1 %is.early, label %goes.on, label %due

due:
  %deadline.place = getelementptr inbounds i64, ptr %slots, i64 DEADLINE_SLOT
  %deadline = load i64, ptr %deadline.place
  %later = add i64 %now, LOOKS_EVERY
  %is.later = icmp slt i64 %deadline, %later
  %next.look = select i1 %is.later, i64 %deadline, i64 %later
  store i64 %next.look, ptr %next.place
  %control.place = getelementptr inbounds i64, ptr %slots, i64 CONTROL_SLOT
  %control = load ptr, ptr %control.place
  %main.place = getelementptr inbounds i64, ptr %control, i64 MAIN
  %main = load i64, ptr %main.place
  %is.main = icmp eq i64 %main, %self
  br i1 %is.main, label %ask, label %compare

ask:
  %ensure.place = getelementptr inbounds i64, ptr %control, i64 ENSURE
  %release.place = getelementptr inbounds i64, ptr %control, i64 RELEASE
  %check.place = getelementptr inbounds i64, ptr %control, i64 CHECK
  %fetch.place = getelementptr inbounds i64, ptr %control, i64 FETCH
  %ensure = load ptr, ptr %ensure.place
  %release = load ptr, ptr %release.place
  %check = load ptr, ptr %check.place
  %fetch = load ptr, ptr %fetch.place
  %state = call i32 %ensure()
  %raised = call i32 %check()
  %is.raised = icmp ne i32 %raised, 0
  br i1 %is.raised, label %keep, label %asked

keep:
  %type.to = getelementptr inbounds i64, ptr %slots, i64 RAISED_SLOT
  %value.to = getelementptr inbounds i64, ptr %type.to, i64 1
  %traceback.to = getelementptr inbounds i64, ptr %type.to, i64 2
  call void %fetch(ptr %type.to, ptr %value.to, ptr %traceback.to)
  br label %asked

asked:
  call void %release(i32 %state)
  br i1 %is.raised, label %stop.now, label %compare

compare:
  %is.late = icmp sge i64 %now, %deadline
  br i1 %is.late, label %stop.now, label %goes.on

stop.now:
  %reason = phi i64 [ INTERRUPTED, %asked ], [ TIMED_OUT, %compare ]
  store atomic i64 %reason, ptr %stop.place monotonic, align 8
  ret i64 %reason
"""

_LOOK_DECLARATIONS = """
declare i64 @pthread_self()
declare i32 @clock_gettime(i32, ptr)
"""

_COARSE = 6
"""Linux's clock that costs least, and the usual one of other systems that have such functions."""

_X86_MODE = {
    # Bits 6 and 15 of the control register: subnormal operands, and results, are zero.
    "ENTER_MODE": """
  %mode.place = getelementptr inbounds i64, ptr %table, i64 3
  %mode = load i64, ptr %mode.place
  %flushes = icmp ne i64 %mode, 0
  %saved = alloca i32
  %changed = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %saved)
  %control = load i32, ptr %saved
  %flushing = or i32 %control, 32832
  %chosen = select i1 %flushes, i32 %flushing, i32 %control
  store i32 %chosen, ptr %changed
  call void @llvm.x86.sse.ldmxcsr(ptr %changed)""",
    "LEAVE_MODE": "  call void @llvm.x86.sse.ldmxcsr(ptr %saved)",
    "DECLARATIONS": """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)""",
}

DISJOINT_SYMBOL = "fg_disjoint"

DISJOINT = """
; int64 kernel(int64* slots, int64* args): whether donated arrays overlap with no other array.
;   args: begin, end, number of arrays, number of donated ones; (slot, bytes) of each, the donated
;   ones first.
define i64 @fg_disjoint(ptr noalias %slots, ptr noalias %args) nounwind {
entry:
  %count.place = getelementptr inbounds i64, ptr %args, i64 2
  %count = load i64, ptr %count.place
  %donated.place = getelementptr inbounds i64, ptr %args, i64 3
  %donated = load i64, ptr %donated.place
  %ranges = getelementptr inbounds i64, ptr %args, i64 4
  br label %first

first:
  %i = phi i64 [ 0, %entry ], [ %i.next, %last ]
  %more.donated = icmp slt i64 %i, %donated
  br i1 %more.donated, label %take, label %distinct

take:
  %i.place = getelementptr inbounds { i64, i64 }, ptr %ranges, i64 %i
  %i.slot = load i64, ptr %i.place
  %i.bytes.place = getelementptr inbounds { i64, i64 }, ptr %i.place, i64 0, i32 1
  %i.bytes = load i64, ptr %i.bytes.place
  %i.address = getelementptr inbounds i64, ptr %slots, i64 %i.slot
  %i.start = load i64, ptr %i.address
  %i.end = add i64 %i.start, %i.bytes
  %i.next = add nsw i64 %i, 1
  br label %second

second:
  %j = phi i64 [ %i.next, %take ], [ %j.next, %compare ]
  %more = icmp slt i64 %j, %count
  br i1 %more, label %compare, label %last

compare:
  %j.place = getelementptr inbounds { i64, i64 }, ptr %ranges, i64 %j
  %j.slot = load i64, ptr %j.place
  %j.bytes.place = getelementptr inbounds { i64, i64 }, ptr %j.place, i64 0, i32 1
  %j.bytes = load i64, ptr %j.bytes.place
  %j.address = getelementptr inbounds i64, ptr %slots, i64 %j.slot
  %j.start = load i64, ptr %j.address
  %j.end = add i64 %j.start, %j.bytes
  %j.next = add nsw i64 %j, 1
  %starts.before = icmp ult i64 %j.start, %i.end
  %ends.after = icmp ult i64 %i.start, %j.end
  %overlap = and i1 %starts.before, %ends.after
  br i1 %overlap, label %shared, label %second

last:
  br label %first

shared:
  ret i64 OVERLAP

distinct:
  ret i64 0
}
""".replace("OVERLAP", str(OVERLAP))

LOOP_SYMBOL = "fg_loop"

# Common to loops and branches: the sets, from %sets on, %n_sets of them; then to %CONTINUE.
_SETS = """
  br label %sets.head

sets.head:
  %s = phi i64 [ 0, %entry ], [ %s.next, %set ]
  %more.sets = icmp slt i64 %s, %n_sets
  br i1 %more.sets, label %set, label %CONTINUE

set:
  %set.at = mul nsw i64 %s, 3
  %set.to = getelementptr inbounds i64, ptr %sets, i64 %set.at
  %set.from = getelementptr inbounds i64, ptr %set.to, i64 1
  %set.bytes = getelementptr inbounds i64, ptr %set.to, i64 2
  %to = load i64, ptr %set.to
  %from = load i64, ptr %set.from
  %bytes = load i64, ptr %set.bytes
  %from.slot = getelementptr inbounds i64, ptr %slots, i64 %from
  %from.address = load i64, ptr %from.slot
  %to.address = add i64 %from.address, %bytes
  %to.slot = getelementptr inbounds i64, ptr %slots, i64 %to
  store i64 %to.address, ptr %to.slot
  %s.next = add nsw i64 %s, 1
  br label %sets.head
"""

_LOOP = """
define i64 @fg_loop(ptr %slots, ptr %args) nounwind {
entry:
READS
  %sets = getelementptr inbounds i64, ptr %args, i64 HEAD
  %n_set_words = mul nsw i64 %n_sets, 3
  %turns = getelementptr inbounds i64, ptr %sets, i64 %n_set_words
  %n_turn_words = mul nsw i64 %n_turns, 3
  %moves = getelementptr inbounds i64, ptr %turns, i64 %n_turn_words
  %run = inttoptr i64 %executor to ptr
  %body.table = inttoptr i64 %body to ptr
  %condition.table = inttoptr i64 %condition to ptr
  %has.condition = icmp ne i64 %condition, 0
SETS
head:
  %i = phi i64 [ 0, %sets.head ], [ %i.next, %moves.head ]
  %more = icmp slt i64 %i, %length
  br i1 %more, label %count, label %done

count:
  %turn.of = and i64 %i, 7
  %is.due = icmp eq i64 %turn.of, 7
  br i1 %is.due, label %look, label %ask

look:
  %look.place = getelementptr inbounds i64, ptr %slots, i64 LOOK_SLOT
  %look.function = load ptr, ptr %look.place
  %stopped = call i64 %look.function(ptr %slots)
  %stops = icmp ne i64 %stopped, 0
  br i1 %stops, label %halt, label %ask

halt:
  ret i64 %stopped

ask:
  br i1 %has.condition, label %test, label %step

test:
  %test.code = call i64 %run(ptr %slots, ptr %condition.table, i64 0)
  %test.failed = icmp ne i64 %test.code, 0
  br i1 %test.failed, label %stop, label %decide

decide:
  %flag.slot = getelementptr inbounds i64, ptr %slots, i64 %condition_slot
  %flag.base = load ptr, ptr %flag.slot
  %flag.place = getelementptr inbounds i8, ptr %flag.base, i64 %condition_offset
  %flag = load i8, ptr %flag.place
  %holds = icmp ne i8 %flag, 0
  br i1 %holds, label %step, label %done

step:
  %code = call i64 %run(ptr %slots, ptr %body.table, i64 0)
  %failed = icmp ne i64 %code, 0
  br i1 %failed, label %stop, label %turns.head

turns.head:
  %t = phi i64 [ 0, %step ], [ %t.next, %turn ]
  %more.turns = icmp slt i64 %t, %n_turns
  br i1 %more.turns, label %turn, label %moves.head

turn:
  %turn.at = mul nsw i64 %t, 3
  %now.place = getelementptr inbounds i64, ptr %turns, i64 %turn.at
  %next.place = getelementptr inbounds i64, ptr %now.place, i64 1
  %spare.place = getelementptr inbounds i64, ptr %now.place, i64 2
  %now = load i64, ptr %now.place
  %next = load i64, ptr %next.place
  %spare = load i64, ptr %spare.place
  %now.slot = getelementptr inbounds i64, ptr %slots, i64 %now
  %next.slot = getelementptr inbounds i64, ptr %slots, i64 %next
  %spare.slot = getelementptr inbounds i64, ptr %slots, i64 %spare
  %next.address = load i64, ptr %next.slot
  %spare.address = load i64, ptr %spare.slot
  store i64 %next.address, ptr %now.slot
  store i64 %spare.address, ptr %next.slot
  store i64 %next.address, ptr %spare.slot
  %t.next = add nsw i64 %t, 1
  br label %turns.head

moves.head:
  %m = phi i64 [ 0, %turns.head ], [ %m.next, %move ]
  %i.next = add nsw i64 %i, 1
  %more.moves = icmp slt i64 %m, %n_moves
  br i1 %more.moves, label %move, label %head

move:
  %move.at = mul nsw i64 %m, 2
  %move.place = getelementptr inbounds i64, ptr %moves, i64 %move.at
  %move.bytes = getelementptr inbounds i64, ptr %move.place, i64 1
  %moved = load i64, ptr %move.place
  %distance = load i64, ptr %move.bytes
  %moved.slot = getelementptr inbounds i64, ptr %slots, i64 %moved
  %moved.address = load i64, ptr %moved.slot
  %moved.to = add i64 %moved.address, %distance
  store i64 %moved.to, ptr %moved.slot
  %m.next = add nsw i64 %m, 1
  br label %moves.head

stop:
  %error = load i64, ptr %slots
  ret i64 %error

done:
  ret i64 0
}
"""

BRANCH_SYMBOL = "fg_branch"

_BRANCH = """
define i64 @fg_branch(ptr %slots, ptr %args) nounwind {
entry:
READS
  %sets = getelementptr inbounds i64, ptr %args, i64 HEAD
  %n_set_words = mul nsw i64 %n_sets, 3
  %tables = getelementptr inbounds i64, ptr %sets, i64 %n_set_words
  %run = inttoptr i64 %executor to ptr
SETS
choose:
  %index.slot = getelementptr inbounds i64, ptr %slots, i64 %index_slot
  %index.base = load ptr, ptr %index.slot
  %index.place = getelementptr inbounds i8, ptr %index.base, i64 %index_offset
  %index = load i64, ptr %index.place
  %last = sub nsw i64 %n_branches, 1
  %below = icmp slt i64 %index, 0
  %index.low = select i1 %below, i64 0, i64 %index
  %above = icmp sgt i64 %index.low, %last
  %chosen = select i1 %above, i64 %last, i64 %index.low
  %table.place = getelementptr inbounds i64, ptr %tables, i64 %chosen
  %table = load ptr, ptr %table.place
  %code = call i64 %run(ptr %slots, ptr %table, i64 0)
  %failed = icmp ne i64 %code, 0
  br i1 %failed, label %stop, label %done

stop:
  %error = load i64, ptr %slots
  ret i64 %error

done:
  ret i64 0
}
"""


def _reads(words: list[str], suffix: str = "") -> str:
    """Instructions that load the first words of the arguments into registers of their names."""
    lines = []
    for i, word in enumerate(words):
        lines.append(f"  %{word}.p = getelementptr inbounds i64, ptr %args, i64 {i}")
        lines.append(f"  %{word}{suffix} = load i64, ptr %{word}.p")
    return "\n".join(lines)


def _control(text: str, words: list[str], continuation: str) -> str:
    text = text.replace("LOOK_SLOT", str(LOOK_SLOT))
    text = text.replace("READS", _reads(words)).replace("HEAD", str(len(words)))
    return text.replace("SETS", _SETS.replace("CONTINUE", continuation))


LOOP = _control(_LOOP, LOOP_WORDS, "head")
BRANCH = _control(_BRANCH, BRANCH_WORDS, "choose")

FOREIGN_SYMBOL = "fg_foreign"

_FOREIGN = """
define internal void @fg_lock(ptr %library) nounwind {
entry:
  br label %again

again:
  %was = atomicrmw xchg ptr %library, i64 1 acquire
  %is.held = icmp ne i64 %was, 0
  br i1 %is.held, label %again, label %locked

locked:
  ret void
}

; What the library is told concerns all threads; therefore the first call says it, and the last one
; takes it back, unless somebody else has said something meanwhile.
define internal void @fg_alone(ptr %library) nounwind noinline {
entry:
  call void @fg_lock(ptr %library)
  %count.to = getelementptr inbounds i64, ptr %library, i64 COUNT
  %count = load i64, ptr %count.to
  %count.next = add nsw i64 %count, 1
  store i64 %count.next, ptr %count.to
  %is.first = icmp eq i64 %count, 0
  br i1 %is.first, label %first, label %release

first:
  %get.at = getelementptr inbounds i64, ptr %library, i64 GET
  %get = load ptr, ptr %get.at
  %before = call i32 %get()
  %before.64 = sext i32 %before to i64
  %before.to = getelementptr inbounds i64, ptr %library, i64 BEFORE
  store i64 %before.64, ptr %before.to
  %is.one = icmp eq i32 %before, 1
  br i1 %is.one, label %release, label %limit

limit:
  %set.at = getelementptr inbounds i64, ptr %library, i64 SET
  %set = load ptr, ptr %set.at
  call void %set(i32 1)
  br label %release

release:
  store atomic i64 0, ptr %library release, align 8
  ret void
}

define internal void @fg_together(ptr %library) nounwind noinline {
entry:
  call void @fg_lock(ptr %library)
  %count.to = getelementptr inbounds i64, ptr %library, i64 COUNT
  %count = load i64, ptr %count.to
  %count.next = sub nsw i64 %count, 1
  store i64 %count.next, ptr %count.to
  %before.at = getelementptr inbounds i64, ptr %library, i64 BEFORE
  %before.64 = load i64, ptr %before.at
  %before = trunc i64 %before.64 to i32
  %is.last = icmp eq i64 %count.next, 0
  %was.more = icmp ne i32 %before, 1
  %is.ours = and i1 %is.last, %was.more
  br i1 %is.ours, label %last, label %release

last:
  %get.at = getelementptr inbounds i64, ptr %library, i64 GET
  %get = load ptr, ptr %get.at
  %now = call i32 %get()
  %is.kept = icmp eq i32 %now, 1
  br i1 %is.kept, label %restore, label %release

restore:
  %set.at = getelementptr inbounds i64, ptr %library, i64 SET
  %set = load ptr, ptr %set.at
  call void %set(i32 %before)
  br label %release

release:
  store atomic i64 0, ptr %library release, align 8
  ret void
}

define i64 @fg_foreign(ptr %slots, ptr %args) nounwind {
entry:
  %places = alloca [MOST_PLACES x i64]
  %values = alloca [MOST_ARGUMENTS x i64]
READS
  %place.words = getelementptr inbounds i64, ptr %args, i64 HEAD
  %n_place_words = mul nsw i64 %n_places, 3
  %argument.words = getelementptr inbounds i64, ptr %place.words, i64 %n_place_words
  %call = inttoptr i64 %function to ptr
  %clear.flags = inttoptr i64 %clear to ptr
  %test.flags = inttoptr i64 %test to ptr
  %clears = icmp ne i64 %clear, 0
  %every.32 = trunc i64 %every to i32
  %invalid.32 = trunc i64 %invalid to i32
  %last = sub nsw i64 %n_places, 1
  %info.place = getelementptr inbounds i64, ptr %places, i64 %last
  %library.at = inttoptr i64 %library to ptr
  %is.alone = icmp ne i64 %library, 0
  br i1 %is.alone, label %alone, label %start

alone:
  call void @fg_alone(ptr %library.at)
  br label %start

start:
  br label %head

head:
  %i = phi i64 [ %begin, %start ], [ %i.next, %succeeded ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %places.head, label %done

places.head:
  %p = phi i64 [ 0, %head ], [ %p.next, %place ]
  %more.places = icmp slt i64 %p, %n_places
  br i1 %more.places, label %place, label %arguments.head

place:
  %place.at = mul nsw i64 %p, 3
  %slot.word = getelementptr inbounds i64, ptr %place.words, i64 %place.at
  %offset.word = getelementptr inbounds i64, ptr %slot.word, i64 1
  %stride.word = getelementptr inbounds i64, ptr %slot.word, i64 2
  %slot = load i64, ptr %slot.word
  %offset = load i64, ptr %offset.word
  %stride = load i64, ptr %stride.word
  %base.place = getelementptr inbounds i64, ptr %slots, i64 %slot
  %base = load i64, ptr %base.place
  %first = add i64 %base, %offset
  %moved = mul i64 %i, %stride
  %address = add i64 %first, %moved
  %place.to = getelementptr inbounds i64, ptr %places, i64 %p
  store i64 %address, ptr %place.to
  %p.next = add nsw i64 %p, 1
  br label %places.head

arguments.head:
  %a = phi i64 [ 0, %places.head ], [ %a.next, %argument.done ]
  %more.arguments = icmp slt i64 %a, %n_arguments
  br i1 %more.arguments, label %argument, label %ready

argument:
  %argument.at = mul nsw i64 %a, 2
  %kind.word = getelementptr inbounds i64, ptr %argument.words, i64 %argument.at
  %value.word = getelementptr inbounds i64, ptr %kind.word, i64 1
  %kind = load i64, ptr %kind.word
  %word = load i64, ptr %value.word
  switch i64 %kind, label %argument.done [
    i64 PLACE, label %kind.place
    i64 PLACE_OF_WORD, label %kind.word.place
    i64 PLACES, label %kind.places
  ]

kind.place:
  %chosen.place = getelementptr inbounds i64, ptr %places, i64 %word
  %chosen = load i64, ptr %chosen.place
  br label %argument.done

kind.word.place:
  %pointed = getelementptr inbounds i64, ptr %args, i64 %word
  %pointed.word = ptrtoint ptr %pointed to i64
  br label %argument.done

kind.places:
  %list.word = ptrtoint ptr %places to i64
  br label %argument.done

argument.done:
  %value = phi i64 [ %word, %argument ], [ %chosen, %kind.place ],
                   [ %pointed.word, %kind.word.place ], [ %list.word, %kind.places ]
  %value.to = getelementptr inbounds i64, ptr %values, i64 %a
  store i64 %value, ptr %value.to
  %a.next = add nsw i64 %a, 1
  br label %arguments.head

ready:
  ; The loops of ufuncs look at flags that their own operations did not raise.
  br i1 %clears, label %clear.them, label %choose

clear.them:
  %cleared = call i32 %clear.flags(i32 %every.32)
  br label %choose

choose:
  switch i64 %n_arguments, label %done [
CASES
  ]
CALLS
called:
  %result = phi i32 RESULTS
  switch i64 %check, label %succeeded [
    i64 BY_FLAG, label %by.flag
    i64 BY_INFO, label %by.info
    i64 BY_RESULT, label %decide
  ]

by.flag:
  %flag = call i32 %test.flags(i32 %invalid.32)
  br label %decide

by.info:
  %info.address = load ptr, ptr %info.place
  %info = load i32, ptr %info.address
  br label %decide

decide:
  %reason = phi i32 [ %result, %called ], [ %flag, %by.flag ], [ %info, %by.info ]
  %is.failure = icmp ne i32 %reason, 0
  br i1 %is.failure, label %failed, label %succeeded

succeeded:
  %i.next = add nsw i64 %i, 1
  br label %head

failed:
  %reason.64 = sext i32 %reason to i64
  %site.to = getelementptr inbounds i64, ptr %slots, i64 1
  %reason.to = getelementptr inbounds i64, ptr %slots, i64 2
  %i.to = getelementptr inbounds i64, ptr %slots, i64 3
  store i64 %site, ptr %site.to
  store i64 %reason.64, ptr %reason.to
  store i64 %i, ptr %i.to
  br label %done

done:
  %answer = phi i64 [ 0, %head ], [ 0, %choose ], [ REFUSED, %failed ]
  br i1 %is.alone, label %together, label %return

together:
  call void @fg_together(ptr %library.at)
  br label %return

return:
  ret i64 %answer
}
"""


def _foreign() -> str:
    counts = range(LEAST_ARGUMENTS, MOST_ARGUMENTS + 1)
    calls = []
    for n in counts:
        calls.append(f"call.{n}:")
        for k in range(n):
            calls.append(f"  %at.{n}.{k} = getelementptr inbounds i64, ptr %values, i64 {k}")
            calls.append(f"  %x.{n}.{k} = load i64, ptr %at.{n}.{k}")
        arguments = ", ".join(f"i64 %x.{n}.{k}" for k in range(n))
        calls += [f"  %r.{n} = call i32 %call({arguments})", "  br label %called", ""]
    replacements = {
        "READS": _reads(FOREIGN_WORDS),
        "HEAD": str(len(FOREIGN_WORDS)),
        "CASES": "\n".join(f"    i64 {n}, label %call.{n}" for n in counts),
        "CALLS": "\n".join(calls),
        "RESULTS": ", ".join(f"[ %r.{n}, %call.{n} ]" for n in counts),
        "MOST_PLACES": str(MOST_PLACES),
        "MOST_ARGUMENTS": str(MOST_ARGUMENTS),
        "PLACE_OF_WORD": str(PLACE_OF_WORD),
        "PLACES": str(PLACES),
        "PLACE": str(PLACE),
        "BY_FLAG": str(BY_FLAG),
        "BY_INFO": str(BY_INFO),
        "BY_RESULT": str(BY_RESULT),
        "REFUSED": str(REFUSED),
        **{name.upper(): str(LIBRARY_WORDS.index(name)) for name in LIBRARY_WORDS[1:]},
    }
    names = "|".join(replacements)
    return re.sub(rf"\b(?:{names})\b", lambda found: replacements[found[0]], _FOREIGN)


FOREIGN = _foreign()

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
  CALL
  %i.next = add nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %end.w
  br i1 %more, label %product, label %done

done:
  ret i64 0
}
declare i32 @llvm.smax.i32(i32, i32)
"""


def executor_assembly(offsets: dict[str, int]) -> str:
    """The executor, for a machine on which array objects have their fields at these offsets."""
    can_look = sys.platform != "win32"
    text = _EXECUTOR.replace("\nLOOK\n", _LOOK if can_look else "look:\n  br label %goes.on\n")
    if can_look:
        text = text.replace("\nDECLARATIONS", _LOOK_DECLARATIONS + "DECLARATIONS")
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    for name, replacement in _X86_MODE.items():
        text = text.replace(name, replacement if is_x86 else "")
    numbers = {
        **offsets,
        "FIRST_SLOT": FIRST_SLOT,
        "STOP_SLOT": STOP_SLOT,
        "OWNER_SLOT": OWNER_SLOT,
        "NEXT_SLOT": NEXT_SLOT,
        "DEADLINE_SLOT": DEADLINE_SLOT,
        "CONTROL_SLOT": CONTROL_SLOT,
        "LOOK_SLOT": LOOK_SLOT,
        "RAISED_SLOT": RAISED_SLOT,
        "LOOKS_EVERY": LOOKS_EVERY,
        "INTERRUPTED": INTERRUPTED,
        "TIMED_OUT": TIMED_OUT,
        "CLOCK": _COARSE,
        **{name.upper(): CONTROL_WORDS.index(name) for name in CONTROL_WORDS},
    }
    return re.sub(r"\b[A-Z][A-Z_]+\b", lambda word: str(numbers.get(word[0], word[0])), text)


def gemm_symbol(letter: str) -> str:
    return f"fg_{letter}gemm"


# BLAS counts columns, so that it computes the transposed product. BLIS takes the distances of rows
# and of columns, and knows by flags what is transposed.
_BLAS_CALL = """call void %gemm(ptr %tb, ptr %ta, ptr %n, ptr %m, ptr %k, ptr %alpha, ptr %b,
                  ptr %ldb, ptr %a, ptr %lda, ptr %beta, ptr %c, ptr %ldc)"""
_BLIS_CALL = """%a.flag = select i1 %a.t, i32 8, i32 0
  %b.flag = select i1 %b.t, i32 8, i32 0
  %a.line = sext i32 %lda.2 to i64
  %b.line = sext i32 %ldb.2 to i64
  %c.line = sext i32 %ldc.2 to i64
  call void %gemm(i32 %a.flag, i32 %b.flag, i64 %m.w, i64 %n.w, i64 %k.w, ptr %alpha,
                  ptr %a, i64 %a.line, i64 1, ptr %b, i64 %b.line, i64 1, ptr %beta,
                  ptr %c, i64 %c.line, i64 1)"""


def gemm_assembly(letter: str, is_blis: bool) -> str:
    """The batched matrix product for BLAS's type ``letter``: s, d, c or z.

    Args:
        letter: The type.
        is_blis: Whether the function is called by BLIS's typed API instead of BLAS's.
    """
    reads = [_reads(GEMM_WORDS, ".w")]
    reads += [f"  %{w}.32 = trunc i64 %{w}.w to i32" for w in ("m", "n", "k", "lda", "ldb", "ldc")]
    return (
        _GEMM.replace("SYMBOL", gemm_symbol(letter))
        .replace("READS", "\n".join(reads))
        .replace("CALL", _BLIS_CALL if is_blis else _BLAS_CALL)
        .replace("REAL", "float" if letter in "sc" else "double")
    )
