"""Small bugs, as changes of a syntax tree.

Only bodies of functions are changed: what a module or a class does when it is loaded is the same
for all mutants, so that one loaded program serves them all.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

Function = ast.FunctionDef | ast.AsyncFunctionDef

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SHOWN = 100  # characters of a changed piece of code


@dataclass(frozen=True)
class Mutant:
    """One planted bug."""

    path: str
    function: str  # qualified name of the outermost function around it
    line: int
    before: str
    after: str
    tree: ast.Module = field(repr=False)  # of the unchanged module
    node: ast.AST = field(repr=False)
    changed: ast.AST = field(repr=False)

    def planted(self) -> ast.Module:
        """Return the module's tree with the bug in it."""
        return _replaced(self.tree, self.node, self.changed)

    @property
    def key(self) -> str:
        """Return a name that stays the same until the function changes there."""
        return f"{self.path} {self.function}: {self.before} -> {self.after}"


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    tree = ast.parse(source)
    found: list[Mutant] = []
    for name, function in _functions(tree, ""):
        for node in _body(function):
            for after in _changes(node):
                found.append(_mutant(path, name, tree, node, after))
    return sorted(_distinct(found), key=lambda each: (each.line, each.before, each.after))


def _distinct(found: list[Mutant]) -> list[Mutant]:
    """Number equal changes in one function, so that their keys differ."""
    seen: dict[str, int] = {}
    distinct = []
    for each in found:
        count = seen[each.key] = seen.get(each.key, 0) + 1
        if count > 1:
            distinct.append(replace(each, after=f"{each.after} (place {count})"))
        else:
            distinct.append(each)
    return distinct


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    """Outermost functions with their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If):
            yield from _functions(child, prefix)


def _body(function: Function) -> Iterator[ast.AST]:
    for statement in function.body:
        if not _is_text(statement):
            yield from _walk(statement)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every node except annotations, texts and the messages of `assert`."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_text(child):
                yield from _walk(child)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the replacements of a node."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARE:
            yield _with(node, ops=[_COMPARE[type(operator)]()])
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                if type(operator) in _COMPARE:
                    changed = list(operators)
                    changed[place] = _COMPARE[type(operator)]()
                    yield _with(node, ops=changed)
        case ast.BinOp(op=binary) if type(binary) in _BINARY and not _joins_texts(node):
            yield _with(node, op=_BINARY[type(binary)]())
        case ast.AugAssign(op=binary) if type(binary) in _BINARY:
            yield _with(node, op=_BINARY[type(binary)]())
            yield _nothing(node)
        case ast.BoolOp(op=ast.And()):
            yield _with(node, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield _with(node, op=ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield _with(node, value=not value)
        case ast.Constant(value=int(value)):
            yield _with(node, value=value + 1)
        case ast.Constant(value=float(value)):
            yield _with(node, value=value * 2 if value else 1.0)
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield _with(node, func=ast.Name(_CALLS[name], ast.Load()))
        case ast.If() | ast.IfExp():
            for forced in (True, False):
                yield _with(node, test=ast.Constant(forced))
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            yield _with(node, test=ast.Constant(False))
        case ast.Return(value=ast.AST() as value) if not _is_none(value):
            yield _with(node, value=ast.Constant(None))
        case ast.Expr() | ast.Raise() | ast.Delete():
            yield _nothing(node)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield _nothing(node)
        case ast.Continue():
            yield ast.copy_location(ast.Break(), node)
        case ast.Break():
            yield ast.copy_location(ast.Continue(), node)


def _joins_texts(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _nothing(node: ast.AST) -> ast.AST:
    return ast.copy_location(ast.Pass(), node)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _mutant(path: str, name: str, tree: ast.Module, node: ast.AST, after: ast.AST) -> Mutant:
    changed = ast.fix_missing_locations(ast.copy_location(after, node))
    line = getattr(node, "lineno", 0)
    return Mutant(path, name, line, _shown(node), _shown(changed), tree, node, changed)


def _shown(node: ast.AST) -> str:
    """Return the changed piece of code, or its head, on one line."""
    if isinstance(node, ast.If | ast.While):
        word = "if" if isinstance(node, ast.If) else "while"
        text = f"{word} {ast.unparse(node.test)}:"
    else:
        text = ast.unparse(node)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _replaced(tree: ast.Module, node: ast.AST, after: ast.AST) -> ast.Module:
    """Return a tree with one node replaced; nodes above it are new, the others are shared."""
    above = _path_to(tree, node)
    assert above is not None
    copies = {id(each): copy.copy(each) for each in above}
    copies[id(node)] = after
    for each in above:
        twin = copies[id(each)]
        for name, value in ast.iter_fields(each):
            if isinstance(value, list):
                setattr(twin, name, [copies.get(id(child), child) for child in value])
            else:
                setattr(twin, name, copies.get(id(value), value))
    top = copies[id(tree)]
    assert isinstance(top, ast.Module)
    return top


def _path_to(root: ast.AST, node: ast.AST) -> list[ast.AST] | None:
    """Return all nodes above a node, the root first."""
    if root is node:
        return []
    for child in ast.iter_child_nodes(root):
        found = _path_to(child, node)
        if found is not None:
            return [root, *found]
    return None
