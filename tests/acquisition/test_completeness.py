import importlib.util
from pathlib import Path

import streamgp.acquisition
from streamgp.testing.pool_laws import PoolLaws
from streamgp.testing.sampling_laws import SamplingLaws


def covered_names():
    names = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        if path == Path(__file__):
            continue
        spec = importlib.util.spec_from_file_location(f"completeness_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in vars(module).items():
            if name.startswith("Test") and isinstance(value, type) and issubclass(value, SamplingLaws | PoolLaws):
                names.add(value.covers)
    return names


def test_every_public_acquisition_function_has_a_law_suite():
    functions = {name for name in streamgp.acquisition.__all__ if name.islower()}
    assert functions <= covered_names()
