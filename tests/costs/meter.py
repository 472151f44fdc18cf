"""Counts the work of `webhook`, C code included, so that growth can be asserted without a clock.

A second copy of the package is loaded whose functions say what they do: a call, a round of a loop
and an item of a comprehension are one step each; `in`, `==`, slices, deletions, concatenations and
calls of C code are as many as they look at, as far as their operands tell. It is a count, not a
time: the same today and tomorrow, on any machine. What a step takes, `bench/costs.py` says.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from abc import ABCMeta
from collections.abc import ItemsView, ValuesView
from contextlib import contextmanager
from enum import EnumType
from functools import _lru_cache_wrapper, cache, partial
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from itertools import compress, count
from types import BuiltinMethodType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

PACKAGE = "webhook"
WORD = 16  # characters that count as one item: C code takes many of them at once
_NAME = "__meter__"
_ROWS, _SETS = (list, tuple), (set, frozenset)  # to ask for `X | Y` takes longer
_SIZED = (str, bytes, list, tuple, dict, set, frozenset)
_WALKED = (list, tuple, ValuesView, ItemsView)
_NAMED = {FunctionType, type, EnumType, ABCMeta}  # else the class of what is called says it
# What looks at one item, however many there are; the lazy ones are counted by the loop. The name
# says it, so that the meter need not be called for these, which are the most.
_ONE_STEP = {
    *("append", "add", "discard", "get", "setdefault", "popitem", "items", "keys", "values"),
    *("isinstance", "len", "id", "type", "getattr", "hasattr", "iter", "next", "bool", "partial"),
    *("enumerate", "zip", "map", "filter", "range", "reversed", "callable", "islice", "chain"),
    *("bisect_left", "bisect_right"),
}
_SEARCHED = (str, re.Pattern)
_SEARCHES = {"find", "rfind", "match", "fullmatch", "search"}
_ODD = {"pop", "insert", *_SEARCHES}
_ONLY_ARGUMENTS = {"startswith", "endswith", "extend", "update", "removeprefix", "removesuffix"}


class Meter:
    """The count, and what the second copy calls in the place of its own operations."""

    def __init__(self) -> None:
        self._start()

    def steps(self, work: Callable[[], object]) -> int:
        """How many steps this takes."""
        self._start()
        work()
        return self.tick() - 1 + self._looked_at

    def _start(self) -> None:
        self._looked_at = 0
        self._ticks = count(1)  # of all steps of one: C code counts them, as they are the most
        self.tick = self._ticks.__next__

    def each(self, items: Iterable[Any]) -> Iterator[Any]:
        return compress(items, self._ticks)

    def spread(self, members: Mapping[Any, Any]) -> Mapping[Any, Any]:
        self._looked_at += len(members)
        return members

    def made(self, value: Any) -> Any:
        """What an operation made: it wrote all of it."""
        self._looked_at += _SIZE[type(value)](value)
        return value

    def added(self, holder: Any, more: Any) -> Any:
        """The right side of `+=`: a text is written anew, a list only goes on."""
        self._looked_at += _size(holder) + _size(more) if isinstance(holder, str) else _size(more)
        return more

    def contains(self, item: Any, holder: Any) -> bool:
        kind: Any = type(holder)
        if _is_walked(kind):
            for each in holder:  # noqa: SIM110  # any() of a generator takes twice as long
                if each is item or self.equal(each, item):
                    return True
            return False
        self._looked_at += _SIZE[type(item)](item)
        if isinstance(holder, str):
            self._looked_at += _SIZE[type(holder)](holder)
        return item in holder

    def lacks(self, item: Any, holder: Any) -> bool:
        return not self.contains(item, holder)

    def equal(self, one: Any, other: Any) -> bool:
        self._looked_at += 1
        if isinstance(one, str):
            if isinstance(other, str) and len(one) == len(other):
                self._looked_at += _size(one)
        elif isinstance(one, _ROWS):
            if type(one) is type(other) and len(one) == len(other):
                return all(map(self._same, one, other))
        elif isinstance(one, dict) and isinstance(other, dict) and len(one) == len(other):
            return all(key in other and self._same(item, other[key]) for key, item in one.items())
        return bool(one == other)

    def unequal(self, one: Any, other: Any) -> bool:
        return not self.equal(one, other)

    def within(self, one: Any, other: Any) -> Any:
        """`<=`, of sets as of numbers."""
        if isinstance(one, _SETS):
            self._looked_at += len(one)
        return one <= other

    def _same(self, one: Any, other: Any) -> bool:
        return one is other or self.equal(one, other)

    def delete(self, holder: Any, at: Any) -> None:
        if isinstance(holder, list) and isinstance(at, int):
            self._looked_at += len(holder) - at if at >= 0 else -at
        del holder[at]

    def call(self, function: Any) -> Any:
        """The function itself if it counts by itself, else one that says what C code does."""
        kind: Any = type(function)
        if kind is not BuiltinMethodType:
            named = function.__func__ if kind is MethodType else function
            if _counts_by_itself(named if type(named) in _NAMED else kind):
                return function
        self.tick()
        return partial(self._in_c, function)

    def _searched(self, function: Any, holder: Any, args: tuple[Any, ...]) -> Any:
        """A search in a text looks at what is between its begin and what it finds."""
        found, name = function(*args), function.__name__
        text = holder if isinstance(holder, str) else args[0]
        first = args[1] if len(args) > 1 else 0
        last = args[2] if len(args[1:]) > 1 else len(text)
        if isinstance(found, int):
            looked_at = last - max(found, first) if name == "rfind" else found - first
            looked_at = last - first if found < 0 else looked_at
        elif found is not None:
            looked_at = found.end() - first
        else:
            looked_at = 1 if name != "search" else last - first
        self._looked_at += max(looked_at, 0) // WORD + 1
        return found

    def _in_c(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(function, _lru_cache_wrapper):  # a text keeps its hash
            return function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        holder = None if isinstance(function, type) else getattr(function, "__self__", None)
        if name in _ODD:
            if name == "pop" and not (isinstance(holder, list) and args):
                return function(*args, **kwargs)
            if name == "insert" and isinstance(holder, list):
                self._looked_at += len(holder) - args[0]
                return function(*args)
            if name in _SEARCHES and isinstance(holder, _SEARCHED):
                return self._searched(function, holder, args)
        looked_at = 0
        for each in args:
            looked_at += _SIZE[type(each)](each)
        if name in _ONLY_ARGUMENTS:
            self._looked_at += looked_at
            return function(*args, **kwargs)
        self._looked_at += looked_at + _SIZE[type(holder)](holder)
        made = function(*args, **kwargs)
        self._looked_at += _SIZE[type(made)](made)
        return made


@cache
def _counts_by_itself(what: Callable[..., Any]) -> bool:
    """Whether this is a function of the package, or a class of it that is none of C code."""
    if isinstance(what, type) and issubclass(what, _SIZED):
        return False
    return (what.__module__ or "").split(".")[0] == PACKAGE


class _Sizes(dict[type, "Callable[[Any], int]"]):
    """What says how much there is to look at in a value of a class."""

    def __missing__(self, kind: type) -> Callable[[Any], int]:
        self[kind] = how = self._of(kind)
        return how

    def _of(self, kind: type) -> Callable[[Any], int]:
        if issubclass(kind, str | bytes):
            return lambda value: len(value) // WORD + 1
        if issubclass(kind, _SIZED):
            return len
        if issubclass(kind, int):
            return lambda value: value.bit_length() // 64
        return lambda _: 0


_SIZE = _Sizes()  # asked more often than all else


def _size(value: Any) -> int:
    return _SIZE[type(value)](value)


@cache
def _is_walked(kind: type) -> bool:
    """Whether `in` looks at one item after the other."""
    return issubclass(kind, _WALKED)


class _Counting(ast.NodeTransformer):
    """Rewrites the functions of a module; what stands outside of them is done once."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        inside = ast.Module(node.body, [])
        _Inside().generic_visit(inside)
        node.body = [ast.Expr(_call("tick")), *inside.body]
        return node


class _Inside(ast.NodeTransformer):
    """Rewrites the operations of a function."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return _Counting().visit_FunctionDef(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        node.iter = _call("each", node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call("tick")))
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.iter = _call("each", node.iter)
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.YieldFrom:
        self.generic_visit(node)
        node.value = _call("each", node.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.Starred:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _call("each", node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        self.generic_visit(node)
        node.values = [
            value if key is not None else _call("spread", value)
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        self.generic_visit(node)
        if node.arg is None:
            node.value = _call("spread", node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return _call("made", node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _call("made", node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            node.value = _call("added", ast.Name(node.target.id, ast.Load()), node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        is_read = isinstance(node.ctx, ast.Load) and _is_slice(node)
        return _call("made", node) if is_read else node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        self.generic_visit(node)
        if any(_is_slice(target) for target in node.targets):
            node.value = _call("made", node.value)
        return node

    def visit_Delete(self, node: ast.Delete) -> list[ast.stmt]:
        self.generic_visit(node)
        return [
            ast.Expr(_call("delete", at.value, at.slice))
            if isinstance(at, ast.Subscript) and not _is_slice(at)
            else ast.Delete([at])
            for at in node.targets
        ]

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        name = _COMPARISONS.get(type(node.ops[0])) if len(node.ops) == 1 else None
        return _call(name, node.left, node.comparators[0]) if name else node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
        if name in _ONE_STEP:
            node.func = ast.BoolOp(ast.And(), [_call("tick"), node.func])
        elif name != "super":
            node.func = _call("call", node.func)
        return node


_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.In: "contains",
    ast.NotIn: "lacks",
    ast.Eq: "equal",
    ast.NotEq: "unequal",
    ast.LtE: "within",
}


def _is_slice(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _call(name: str, *args: ast.expr) -> ast.Call:
    function = ast.Attribute(ast.Name(_NAME, ast.Load()), name, ast.Load())
    return ast.Call(function, list(args), [])


@cache  # each copy has modules of its own, and all of them the same code
def counting(source: str, file: str) -> Any:
    """The code of this text, as it counts."""
    tree = _Counting().visit(ast.parse(source, file))
    return compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, meter: Meter) -> None:
        super().__init__(name, path)
        self._meter = meter

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(path)  # so nothing is read from the cache of the real modules, or put there

    def source_to_code(self, data: Any, path: Any, **_: Any) -> Any:  # type: ignore[override]
        return counting(bytes(data).decode(), str(path))

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, _NAME, self._meter)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.split(".", maxsplit=1)[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path, self._meter)
        return spec


class Copy:
    """The second copy of the package, and its meter."""

    def __init__(self) -> None:
        self.meter = Meter()
        self._modules: dict[str, ModuleType] = {}
        self._caches: list[_lru_cache_wrapper[Any]] = []
        self._lasting: set[_lru_cache_wrapper[Any]] = set()

    def module(self, name: str) -> Any:
        """A module of the copy, with those that it imports."""
        with self.in_place():
            return importlib.import_module(name)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the modules of the copy where the real ones are, which come back afterwards."""
        real = _taken_out()
        sys.modules.update(self._modules)
        finder = _Finder(self.meter)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            self._modules = _taken_out()
            sys.modules.update(real)
            self._caches = _caches_of(self._modules.values())

    def forget(self) -> None:
        """Empty the caches: what was asked before must not make the next question cheaper."""
        for each in self._caches:
            if each not in self._lasting:
                each.cache_clear()

    def keep(self, function: Any) -> None:
        """Keep the cache of a function that is asked about no words of a tenant."""
        self._lasting.add(function)


def _caches_of(modules: Iterable[ModuleType]) -> list[_lru_cache_wrapper[Any]]:
    values = (value for module in modules for value in vars(module).values())
    return [each for each in values if isinstance(each, _lru_cache_wrapper)]


def _taken_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.split(".")[0] == PACKAGE]
    return {name: sys.modules.pop(name) for name in names}
