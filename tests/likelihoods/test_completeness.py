import importlib.util
from pathlib import Path

import streamgp.likelihoods
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.multi_latent_laws import MultiLatentLaws


def covered_names():
    names = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        if path == Path(__file__):
            continue
        spec = importlib.util.spec_from_file_location(f"completeness_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in vars(module).items():
            if (
                name.startswith("Test")
                and isinstance(value, type)
                and issubclass(value, LikelihoodLaws | MultiLatentLaws)
            ):
                names.add(value.covers)
    return names


def test_every_public_likelihood_has_a_law_suite():
    functions = {"from_name", "names", "read_likelihood", "register"}
    public = {name for name in streamgp.likelihoods.__all__ if not name.startswith("Abstract")} - functions
    assert public <= covered_names()


def test_every_public_likelihood_is_final_and_frozen():
    for name in streamgp.likelihoods.__all__:
        value = getattr(streamgp.likelihoods, name)
        if isinstance(value, type) and not name.startswith("Abstract"):
            assert value.__final__
            assert value.__dataclass_params__.frozen
