"""Mutation testing: small changes of the meaning of the code, and whether the tests of its package notice them.

    python tests/mutants.py --seed 3 --number 50 gp conditioning

A mutant is one change at one place: a comparison, a sign, a constant, a dropped factor, keyword or statement, swapped
arguments, a transpose. A line is drawn first and then a change of it, so that long lines count no more than short ones.
Each mutant is written into a copy of the sources, and only those tests of the package that run its line are run, in a
fork of a process that has imported all but the package. Results are appended to a file; a run that was interrupted goes
on where it ended. `tests/mutants.toml` lists changes that change nothing, each with the reason.
"""

import argparse
import ast
import contextlib
import copy
import difflib
import functools
import hashlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("linalg", "gp", "likelihoods", "sites", "conditioning")
# Folders of tests, beside those of the same name: what a kernel says of sums and slopes is tested with evidence.
_ALSO = {"gp": ("evidence",), "conditioning": ("evidence",)}
# A mutant may take this many times what its tests take, traced, and as many seconds more, before it counts as noticed:
# of the processor, as a busy machine is no reason.
_TIMES, _SECONDS = 3.0, 30.0
# What a mutant that sleeps may take on the clock.
_LONGEST = 3600.0
# Of pytest: no cache, and no complaint that its plugins were imported before it.
_QUIETLY = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
# Memory that a mutant may take beyond what is there when it starts; a loop that never ends would take all there is.
_MEMORY = 4 * 2**30

# Changes of names: what is called instead.
_INSTEAD = {
    "solve_lower": "solve_lower_transpose",
    "solve_lower_transpose": "solve_lower",
    "min": "max", "amin": "amax", "minimum": "maximum", "any": "all", "clamp_min": "clamp_max",
    "max": "min", "amax": "amin", "maximum": "minimum", "all": "any", "clamp_max": "clamp_min",
    "log": "log1p", "log1p": "log", "exp": "expm1", "expm1": "exp", "sum": "mean", "mean": "sum",
    "zeros_like": "ones_like", "ones_like": "zeros_like", "new_zeros": "new_ones", "new_ones": "new_zeros",
}  # fmt: skip
# Methods without arguments that leave a value of the same kind.
_DROPPED = {
    "abs",
    "cumsum",
    "double",
    "exp",
    "log",
    "neg",
    "reciprocal",
    "sqrt",
    "square",
    "clamp_min",
    "clamp",
    "flip",
}
# Functions whose first two arguments may be swapped without a change.
_SYMMETRIC = {"min", "max", "minimum", "maximum", "equal", "isclose", "hypot", "broadcast_shapes"}
_KEPT_KEYWORDS = {"strict", "name", "names", "device", "advice", "stacklevel", "encoding"}
# Whole numbers from here on are of nodes, steps or sizes: half of them is a change, and one more is none.
_MANY = 16
_COMPARED = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
_COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


class Mutant(NamedTuple):
    """A changed source: where, what kind of change, and the whole text."""

    path: str
    line: int
    statement: range
    kind: str
    source: str

    def key(self) -> str:
        return hashlib.sha256(f"{self.path}\0{self.source}".encode()).hexdigest()[:12]

    def difference(self, original: str) -> list[str]:
        lines = difflib.unified_diff(original.splitlines(), self.source.splitlines(), lineterm="", n=0)
        return [line for line in lines if line[:3] not in ("---", "+++") and line[:2] != "@@"]


# Making mutants


def mutants_of(path: str, source: str) -> Iterator[tuple[int, Callable[[], Mutant]]]:
    """Yield the lines of all mutants of a file, and functions that make them."""
    encoded = source.encode()
    starts = [0]
    for line in encoded.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def make(kind: str, part: Any, new: ast.AST, statement: range) -> Mutant:
        text = ast.unparse(new)
        if not isinstance(new, ast.Name | ast.Attribute | ast.Constant | ast.Call | ast.Pass):
            text = f"({text})"
        begin, end = starts[part.lineno - 1] + part.col_offset, starts[part.end_lineno - 1] + part.end_col_offset
        mutated = (encoded[:begin] + text.encode() + encoded[end:]).decode()
        return Mutant(path, part.lineno, statement, kind, mutated)

    for node, statement in _nodes(ast.parse(source), range(0)):
        for kind, part, new in _changes(node):
            yield part.lineno, functools.partial(make, kind, part, new, statement)  # type: ignore[attr-defined]


def _nodes(node: ast.AST, statement: range) -> Iterator[tuple[ast.AST, range]]:
    """Yield what may be changed: no imports, annotations, decorators, texts, nothing that is raised or shown.

    With each node come the lines of its statement: for one with a body, those before it, but for a function all.
    """
    is_shown = isinstance(node, ast.FunctionDef) and node.name in ("__repr__", "_repr_html_", "_describe")
    is_list = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    is_untouched = isinstance(node, ast.Import | ast.ImportFrom | ast.Raise | ast.JoinedStr | ast.Assert)
    is_wording = isinstance(node, ast.IfExp) and _is_text(node.body) and _is_text(node.orelse)
    if is_shown or is_list or is_untouched or is_wording or _is_about_types(node) or _is_bound(node):
        return
    if isinstance(node, ast.stmt):
        body = [] if isinstance(node, ast.FunctionDef) else getattr(node, "body", [])
        statement = range(node.lineno, body[0].lineno if body else (node.end_lineno or node.lineno) + 1)
    yield node, statement
    for name, field in ast.iter_fields(node):
        is_kept = isinstance(node, ast.keyword) and node.arg in _KEPT_KEYWORDS
        if name not in ("annotation", "returns", "decorator_list") and not is_kept:
            for child in field if isinstance(field, list) else [field]:
                if isinstance(child, ast.AST):
                    yield from _nodes(child, statement)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_about_types(node: ast.AST) -> bool:
    """Tell names of types, and what is imported for them alone."""
    if isinstance(node, ast.If):
        return getattr(node.test, "id", "") == "TYPE_CHECKING"
    if not isinstance(node, ast.Assign):
        return False
    kinds = ast.Name | ast.Attribute | ast.Subscript | ast.BinOp | ast.BitOr | ast.Tuple | ast.Constant | ast.Load
    names = [part for part in ast.walk(node.value) if isinstance(part, ast.Name)]
    is_union = all(isinstance(part, kinds | ast.List) for part in ast.walk(node.value))
    is_variable = isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "TypeVar"
    return is_variable or (
        is_union and bool(names) and all(part.id[:1].isupper() for part in names) and node.col_offset == 0
    )


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """Yield kinds of changes of a node, the part of it that is changed, and what it becomes."""
    match node:
        case ast.Compare(ops=[op]):
            for other in _COMPARED[type(op)]:
                yield "comparison", node, _with(node, ops=[other()])
        case ast.BinOp(left=left, op=op, right=right):
            if isinstance(op, ast.MatMult):
                yield "swapped factors", node, _with(node, left=right, right=left)
            elif type(op) in _COMPUTED:
                yield "arithmetic", node, _with(node, op=_COMPUTED[type(op)]())
            yield "dropped right term", node, left
            if isinstance(op, ast.Add | ast.Mult | ast.MatMult | ast.BitAnd | ast.BitOr):
                yield "dropped left term", node, right
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert(), operand=operand):
            yield "sign", node, operand
        case ast.BoolOp(op=op, values=[first, *rest]):
            yield "and, or", node, _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            yield "dropped condition", node, first
            yield "dropped condition", node, rest[0] if len(rest) == 1 else _with(node, values=rest)
        case ast.IfExp(body=body, orelse=orelse):
            yield "always", node, body
            yield "never", node, orelse
        case ast.If(test=test):
            yield "always", test, ast.Constant(True)
            yield "never", test, ast.Constant(False)
        case ast.Constant(value=bool() as value):
            yield "constant", node, ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield "constant", node, ast.Constant(value + 1 if value < _MANY else value // 2)
        case ast.Constant(value=float() as value):
            for other in (2.0 * value, 0.5 * value) if value else (1.0,):
                yield "constant", node, ast.Constant(other)
        case ast.Attribute(value=value, attr="mT"):
            yield "transpose", node, value
        case ast.Call():
            yield from _changed_calls(node)
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "dropped statement", node, ast.Pass()
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _reads(value, name):
            yield "dropped statement", node, ast.Pass()


def _changed_calls(node: ast.Call) -> Iterator[tuple[str, ast.AST, ast.AST]]:
    func, args, keywords = node.func, node.args, node.keywords
    attribute = "attr" if isinstance(func, ast.Attribute) else "id"
    name = getattr(func, attribute, "")
    is_apart = len(args) > 1 and ast.dump(args[0]) != ast.dump(args[1]) and name not in _SYMMETRIC
    if is_apart and not any(isinstance(arg, ast.Starred) for arg in args[:2]) and not name.startswith("check_"):
        yield "swapped arguments", node, _with(node, args=[args[1], args[0], *args[2:]])
    for i, keyword in enumerate(keywords):
        if keyword.arg is not None and keyword.arg not in _KEPT_KEYWORDS:
            yield "dropped keyword", node, _with(node, keywords=keywords[:i] + keywords[i + 1 :])
    if name in _INSTEAD:
        yield "called instead", node, _with(node, func=_with(func, **{attribute: _INSTEAD[name]}))
    if name in _DROPPED and isinstance(func, ast.Attribute) and getattr(func.value, "id", "") != "torch":
        yield "dropped call", node, func.value


def _is_bound(node: ast.AST) -> bool:
    """Tell a bound of steps that end by themselves, such as `range(100)`."""
    arguments = node.args if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range" else []
    return [getattr(each, "value", 0) >= _MANY for each in arguments if isinstance(each, ast.Constant)] == [True]


def _with(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _reads(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))


def names_set_at(source: str, line: int) -> Iterator[str]:
    """Yield the constants of a file that are set at a line."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and node.lineno <= line <= (node.end_lineno or node.lineno):
            yield from (part.id for part in ast.walk(node.targets[0]) if isinstance(part, ast.Name))


def sample(source_folder: Path, packages: Sequence[str], number: int, seed: int) -> list[Mutant]:
    """Draw mutants: a line of the packages first, then a change of it."""
    rng = random.Random(seed)
    makers: dict[tuple[str, int], list[Callable[[], Mutant]]] = {}
    for package in packages:
        for path in sorted((source_folder / "streamgp" / package).rglob("*.py")):
            name = str(path.relative_to(source_folder))
            for line, make in mutants_of(name, path.read_text()):
                makers.setdefault((name, line), []).append(make)
    drawn = rng.sample(sorted(makers), min(number, len(makers)))
    return [rng.choice(makers[line])() for line in drawn]


# Running tests


class Recorded(NamedTuple):
    """Record of a test: how long it takes, traced, and the lines that it runs of each file."""

    seconds: float
    lines: dict[str, set[int]]


Recording = dict[str, Recorded]


class Recorder:
    """A plugin of pytest that notes which lines of the sources each test runs, and how long it takes."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder) + os.sep
        self.coverage = coverage.Coverage(data_file=None, source=[str(folder)], config_file=False)
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid.partition("::")[0])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        began = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - began
        return result

    def tests(self) -> dict[str, tuple[float, dict[str, list[int]]]]:
        """Time and lines of each test; lines that run on import belong to none."""
        lines: dict[str, dict[str, list[int]]] = {name: {} for name in self.seconds}
        data = self.coverage.get_data()
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                for name in filter(None, contexts):
                    lines[name].setdefault(file.removeprefix(self.folder), []).append(line)
        return {name: (seconds, lines[name]) for name, seconds in self.seconds.items()}


class Selection:
    """A plugin of pytest that keeps the named tests, in their order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {name: i for i, name in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self.order), key=lambda i: self.order[i.nodeid])


def tests_of(mutant: Mutant, recorded: Recording) -> list[str]:
    """Name the tests that run the changed statement: the quick ones first, and each once before its repetitions.

    What runs on import alone may be looked at by any test; those that run something of the file come first.
    """
    lines = {name: test.lines.get(mutant.path, set()) for name, test in recorded.items()}
    # What runs on import is noted for the test that happened to import it.
    of_file = [name for name in recorded if lines[name]] or list(recorded)
    is_local = any(
        node.body[0].lineno <= mutant.line <= (node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(mutant.source))
        if isinstance(node, ast.FunctionDef)
    )
    chosen = [name for name in of_file if not is_local or not lines[name].isdisjoint(mutant.statement)] or of_file
    chosen.sort(key=lambda name: recorded[name].seconds)
    seen: set[str] = set()
    rank: dict[str, int] = {}
    for name in chosen:
        function = name.partition("[")[0]
        rank[name] = (function in seen) + (recorded[name].seconds > 1.0) + 3 * (not lines[name])
        seen.add(function)
    return sorted(chosen, key=lambda name: rank[name])


def run_apart(function: Callable[[], int], output: Path) -> int | None:
    """Run a function in a fork of this process; None if it takes too long."""
    child = os.fork()
    if not child:
        code = 3
        try:
            os.setpgid(0, 0)
            with output.open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            code = function()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    until = time.monotonic() + _LONGEST
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return None if code == -signal.SIGXCPU else code
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _digest_of(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


class Laboratory:
    """A copy of the sources, where they are changed and tested."""

    def __init__(self, folder: Path, records: Path) -> None:
        self.sources, self.log, self.records = folder / "src", folder / "log", records
        shutil.copytree(ROOT / "src", self.sources, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        sys.path[:0] = [str(self.sources), str(ROOT)]
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])  # of what tests start
        os.chdir(ROOT)
        for name in ("scipy.linalg", "sklearn", "torch", "gpytorch", "hypothesis", "beartype", "jaxtyping", "mpmath"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    def record(self, package: str) -> Recording:
        """Note what each test of a package runs."""
        recorded: Recording = {}
        for folder in (package, *_ALSO.get(package, ())):
            recorded |= self._record_folder(folder)
        return recorded

    @functools.cached_property
    def _digest(self) -> str:
        """Digest of what a record depends on beside its own file: the sources, and what tests share."""
        shared = [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_")]
        return _digest_of([*self.sources.rglob("*.py"), *shared])

    @functools.cache  # noqa: B019 # there is one laboratory
    def _record_folder(self, folder: str) -> Recording:
        """Run the tests of a folder; what was noted for the same sources and file is read."""
        names = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "tests" / folder).rglob("test_*.py"))}
        records = {name: self.records / self._digest / f"{_digest_of([path])}.json" for name, path in names.items()}
        missing = [name for name, record in records.items() if not record.exists()]
        if missing:
            print(f"Recording what {len(missing)} files of tests of {folder} run.", flush=True)

            def run() -> int:
                recorder = Recorder(self.sources)
                with recorder.coverage.collect():
                    code = pytest.main([*_QUIETLY, *missing], plugins=[recorder])
                tests = recorder.tests()
                (self.records / self._digest).mkdir(exist_ok=True)
                for name in set(missing) - recorder.failed:
                    own = {test: value for test, value in tests.items() if test.partition("::")[0] == name}
                    records[name].write_text(json.dumps(own))
                return code

            if run_apart(run, self.log) != 0:
                raise SystemExit(f"The tests of {folder} fail without any change:\n{self.log.read_text()[-3000:]}")
        return {
            test: Recorded(seconds, {path: set(here) for path, here in lines.items()})
            for record in records.values()
            for test, (seconds, lines) in json.loads(record.read_text()).items()
        }

    def judge(self, mutant: Mutant, tests: Sequence[str], seconds: float) -> str:
        """Say whether tests notice a mutant."""
        path = self.sources / mutant.path
        original, limit = path.read_text(), int(seconds)

        def run() -> int:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
            files = sorted({name.partition("::")[0] for name in tests})
            return pytest.main([*_QUIETLY, "-x", *files], plugins=[Selection(tests)])

        try:
            path.write_text(mutant.source)
            code = run_apart(run, self.log)
        finally:
            path.write_text(original)
        return "survived" if code == 0 else "too slow" if code is None else "noticed"


def main() -> None:
    parser = argparse.ArgumentParser(description="Change the code in small ways, and see whether tests notice.")
    parser.add_argument("packages", nargs="*", default=PACKAGES, help="packages whose lines are changed")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn")
    parser.add_argument("--number", type=int, default=150, help="how many mutants are drawn")
    parser.add_argument("--output", type=Path, default=ROOT / ".mutants", help="folder of results and records")
    parser.add_argument("--least", type=float, default=0.0, help="share to be noticed; less is an error")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    results = options.output / "results.jsonl"
    done = (
        {entry["key"]: entry for entry in map(json.loads, results.read_text().splitlines())} if results.exists() else {}
    )
    listed = tomllib.loads((ROOT / "tests/mutants.toml").read_text())
    reasons = {(entry["path"], *entry["change"]): entry["reason"] for entry in listed["equivalent"]}
    settings = {(path, name) for entry in listed["setting"] for path, names in entry["names"].items() for name in names}
    counts = {"noticed": 0, "too slow": 0, "equivalent": 0, "survived": 0}
    with tempfile.TemporaryDirectory() as folder:
        laboratory = Laboratory(Path(folder), options.output)
        records: dict[str, Recording] = {}
        for mutant in sample(laboratory.sources, options.packages, options.number, options.seed):
            original = (laboratory.sources / mutant.path).read_text()
            difference = mutant.difference(original)
            if (entry := done.get(mutant.key())) is None:
                package = Path(mutant.path).parts[1]
                recorded = records.get(package) or records.setdefault(package, laboratory.record(package))
                tests = tests_of(mutant, recorded)
                limit = _SECONDS + _TIMES * sum(recorded[name].seconds for name in tests)
                began = time.monotonic()
                verdict = laboratory.judge(mutant, tests, limit) if tests else "survived"
                entry = {"key": mutant.key(), "verdict": verdict, "tests": len(tests), "path": mutant.path}
                entry |= {"line": mutant.line, "kind": mutant.kind, "change": difference}
                entry |= {"seconds": round(time.monotonic() - began, 1)}
                with results.open("a") as file:
                    file.write(json.dumps(entry) + "\n")
            verdict, reason = entry["verdict"], reasons.get((mutant.path, *(line[1:].strip() for line in difference)))
            is_setting = any((mutant.path, name) in settings for name in names_set_at(original, mutant.line))
            if verdict == "survived" and (reason or (is_setting and mutant.kind == "constant")):
                verdict = "equivalent"
            counts[verdict] += 1
            if verdict == "survived":
                print(
                    f"src/{mutant.path}:{mutant.line}: {mutant.kind}, {entry['tests']} tests",
                    *difference,
                    sep="\n",
                    flush=True,
                )
    noticed = counts["noticed"] + counts["too slow"]
    share = noticed / max(noticed + counts["survived"], 1)
    print(
        ", ".join(f"{number} {verdict}" for verdict, number in counts.items()) + f": {share:.1%} of those that matter."
    )
    if share < options.least:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
