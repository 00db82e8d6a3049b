"""One page of the reference for each public name of the package, grouped by what they are for."""

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import streamgp

# Modules whose public names have pages of their own, beside those of the package itself.
_MODULES = (
    "likelihoods",
    "conditioning",
    "training",
    "models",
    "acquisition",
    "loops",
    "evidence",
    "streams",
    "streams.preprocessing",
    "streams.keyed",
    "sites",
    "gp",
    "storage",
    "errors",
    "integrations.river",
    "integrations.optuna",
    "integrations.ax",
    "integrations.dask",
)


def _page(module: str, name: str, value: object) -> str:
    if inspect.isclass(value):
        body = f".. autoclass:: {name}\n   :members:\n   :inherited-members: BaseEstimator, ABC, Module, Exception\n"
    elif inspect.isroutine(value):
        body = f".. autofunction:: {name}\n"
    else:
        body = f".. autodata:: {name}\n"
    title = f"{module.removeprefix('streamgp.') + '.' if module != 'streamgp' else ''}{name}"
    return f"{title}\n{'=' * len(title)}\n\n.. py:currentmodule:: {module}\n\n{body}"


def _names(module: Any) -> list[str]:
    """Public names but modules and constants, each where users import it from: the package itself, if it has them."""
    names = [name for name in module.__all__ if not name.startswith("_") and not name.isupper()]
    if module is not streamgp:
        shown = {name: getattr(streamgp, name) for name in streamgp.__all__}
        names = [name for name in names if shown.get(name) is not getattr(module, name)]
    return [name for name in names if not inspect.ismodule(getattr(module, name))]


def _index(title: str, pages: list[str]) -> str:
    lines = "\n".join(f"   {page}" for page in pages)
    return f"{title}\n{'=' * len(title)}\n\n.. toctree::\n   :maxdepth: 1\n\n{lines}\n"


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_pages(app: Any) -> None:
    """Write the pages that autodoc fills, into a folder that is not under version control."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for module_name in ("", *_MODULES):
        module = import_module(f"streamgp.{module_name}") if module_name else streamgp
        pages = []
        for name in _names(module):
            page = f"{module_name + '.' if module_name else ''}{name}"
            _write(folder / f"{page}.rst", _page(module.__name__, name, getattr(module, name)))
            pages.append(page)
        title = f"streamgp.{module_name}" if module_name else "streamgp"
        _write(folder / f"index-{module_name or 'package'}.rst", _index(title, pages))
        written |= {f"{page}.rst" for page in pages} | {f"index-{module_name or 'package'}.rst"}
    for stale in folder.glob("*.rst"):
        if stale.name not in written:
            stale.unlink()


def skip_foreign(app: Any, what: str, name: str, item: Any, is_skipped: bool, options: Any) -> bool | None:
    """Leave out methods that are inherited from other libraries; those describe them."""
    module = getattr(inspect.unwrap(item), "__module__", None) if callable(item) else None
    return True if module is not None and not module.startswith("streamgp") else None


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True}
