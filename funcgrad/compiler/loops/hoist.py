"""Loop-invariant code motion.

``hoist : function -> function``. What does not vary in a loop is computed once, before it:
statements whose operands the loop does not assign, and what does not vary inside of statements that
do.

This is not left to LLVM, for two reasons. A formula may hold a branch (libm for rare arguments),
and LLVM moves no branches. And LLVM's loop vectoriser asks of every instruction in a loop whether
it is uniform, by following its operands along every path: in a chain of formulas on an invariant
number, whose instructions use each other more than once, there are exponentially many. It must not
get to see one.

What is moved can be computed at any time: words without side effects neither trap nor read memory.
A loop that does not run at all has then computed a few numbers in vain. Numbers at the place of a
pointer are loaded before a loop, too, that writes to other places alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from funcgrad.base.forking import cached_property
from funcgrad.compiler.loops import language


def hoist(function: language.Function, is_pure: Callable[[str], bool]) -> language.Function:
    """A kernel with what does not vary moved out of its loops.

    Args:
        function: The kernel.
        is_pure: Whether the word of a name neither reads nor writes memory.
    """
    return language.Function(_Hoister(function, is_pure).treated(function.body)[0])


class _Hoister:
    def __init__(self, function: language.Function, is_pure: Callable[[str], bool]) -> None:
        self.is_pure = is_pure
        self.assignments = Counter(language.assigned(function.body))
        self.n_moved = 0

    def treated(self, body: language.Body) -> tuple[list[language.Statement], set[str]]:
        """Statements with their loops hoisted out of, inner ones first; the names they assign."""
        treated: list[language.Statement] = []
        names: set[str] = set()
        for statement in body:
            target, operands, blocks = statement.parts()
            if target:
                names.add(target)
            if blocks:
                found = [self.treated(block) for block in blocks]
                blocks = [block for block, _ in found]
                inside = {target}.union(*(inner for _, inner in found))
                names |= inside
                if isinstance(statement, language.For | language.While):
                    loop = _Loop(self, inside, *blocks)
                    treated += loop.moved
                    names.update([moved.name for moved in loop.moved])
                    blocks = [loop.body]
                statement = statement.of_parts(target, operands, blocks)
            treated.append(statement)
        return treated, names

    def new_name(self) -> str:
        self.n_moved += 1
        return f"h{self.n_moved}"


class _Loop:
    """Takes what does not vary out of one loop, whose inner loops are treated already.

    Attributes:
        moved: What goes before the loop.
        body: What stays.
    """

    def __init__(self, hoister: _Hoister, varying: set[str], body: language.Body) -> None:
        self.hoister = hoister
        self.moved: list[language.Assign] = []
        self.varying = varying
        self.known: dict[int, bool] = {}
        self.whole = body
        self.is_certain = True
        self.body = self._kept(body)

    @cached_property
    def written(self) -> set[int] | None:
        """The scopes of memory that the loop may change; nothing if it may change any.

        Those that begin anew in each iteration, as those of a kernel within a loop, promise nothing
        about another one.
        """
        found: set[int] = set()
        waiting = [*language.expressions(self.whole)]
        while waiting:
            match waiting.pop():
                case language.Apply(word, operands):
                    waiting += operands
                    if word.startswith("store") or word == "scope":
                        match operands[-1]:
                            case language.Number(int(scope)):
                                found.add(scope)
                            case _:
                                return None
                    elif not (
                        word.startswith("load") or word in _HARMLESS or self.hoister.is_pure(word)
                    ):
                        return None
        return found

    def _kept(self, body: language.Body) -> list[language.Statement]:
        return [kept for statement in body if (kept := self._treated(statement)) is not None]

    def _treated(self, statement: language.Statement) -> language.Statement | None:
        """A statement without what does not vary in it; nothing if it is moved."""
        if isinstance(statement, language.Assign):
            name, value = statement.name, statement.value
            if self.hoister.assignments[name] == 1 and self._is_invariant(value):
                self.varying.discard(name)
                self.known.clear()
                self.moved.append(statement)
                return None
            found = self._named(value)
            return statement if found is value else language.Assign(name, found)
        match statement:
            case (
                language.Evaluate(language.Apply("write_word")) | language.For() | language.While()
            ):  # only cold paths write words
                return statement
        target, operands, blocks = statement.parts()
        operands = [self._named(x) for x in operands]
        return statement.of_parts(target, operands, [*map(self._kept_at_times, blocks)])

    def _kept_at_times(self, block: language.Body) -> list[language.Statement]:
        """The same of statements that not every iteration runs."""
        was_certain, self.is_certain = self.is_certain, False
        self.known.clear()
        kept = self._kept(block)
        self.is_certain = was_certain
        self.known.clear()
        return kept

    def _named(self, value: language.Expression) -> language.Expression:
        """A value, of which what does not vary has names of its own."""
        is_computed = isinstance(value, language.Apply) and value.word != "read_word"
        if not is_computed or not self._is_invariant(value):
            return language.rebuilt(value, self._named)
        name = self.hoister.new_name()
        self.moved.append(language.Assign(name, value))
        return language.Variable(name)

    def _is_invariant(self, value: language.Expression) -> bool:
        """Asked of an expression, and then of its parts: one answer for each."""
        if isinstance(value, language.Variable):
            return value.name not in self.varying
        if not isinstance(value, language.Apply):
            return True
        found = self.known.get(id(value))
        if found is None:
            found = self._is_pure(value) and all(map(self._is_invariant, value.operands))
            self.known[id(value)] = found
        return found

    def _is_pure(self, value: language.Apply) -> bool:
        if value.word == "read_word":
            return value.operands[0] is not language.SLOTS
        if value.word == "load":
            return self.is_certain and self._stays(*value.operands)
        return self.hoister.is_pure(value.word)

    def _stays(self, pointer: language.Expression, *rest: language.Expression) -> bool:
        """Whether a number is in memory that the loop does not write to."""
        match pointer, *rest:
            case language.Variable(), language.Number(), language.Number(int(scope)):
                group, written = scope // language.SCOPES, self.written
                return written is not None and all(
                    other != scope and other // language.SCOPES == group for other in written
                )
        return False


_HARMLESS = ("read_word", "write_word", "look")
"""Words that change no array."""
