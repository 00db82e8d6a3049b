"""Tests mirror the tree: each module has a test of its name, or is listed here with where it is tested."""

from pathlib import Path

import streamgp

SOURCE = Path(streamgp.__file__).parent
TESTS = Path(__file__).parent

# Packages whose modules are steps of one public call are tested through that call, by the suites named here.
ELSEWHERE = {
    "conditioning/multi_output/conditioned_gp.py": "tests/conditioning/multi_output/test_gp.py",
    "conditioning/multi_output/prediction.py": "tests/conditioning/multi_output/test_gp.py",
    "gp/coregionalization.py": "tests/conditioning/multi_output/test_gp.py",
    "problems/ackley.py": "tests/problems/test_problems.py",
    "problems/branin.py": "tests/problems/test_problems.py",
    "problems/hartmann.py": "tests/problems/test_problems.py",
    "problems/laser_simulator.py": "tests/problems/test_problems.py",
    "problems/preference.py": "tests/problems/test_problems.py",
    "problems/rover_obstacles.py": "tests/problems/test_rover.py",
    "sites/implicit.py": "tests/sites/test_rules.py",
    "training/features.py": "tests/training/test_collapsed.py",
    "training/finishing.py": "tests/training/test_fit.py",
    "training/full_batch.py": "tests/training/test_fit.py",
    "training/outcomes.py": "tests/training/test_outputs.py",
    "training/output_model.py": "tests/training/test_outputs.py",
    "training/requests.py": "tests/training/test_fit.py",
    "training/sharding/climbing.py": "tests/training/sharding/test_gaussian.py",
    "training/starting.py": "tests/training/test_fit.py",
}
NUMERICAL = ("linalg", "gp", "sites", "conditioning", "training", "models", "problems", "datasets")


def test_every_numerical_module_has_a_test_of_its_name():
    modules = [*SOURCE.glob("*.py"), *(path for name in NUMERICAL for path in (SOURCE / name).rglob("*.py"))]
    missing = []
    for path in modules:
        relative = path.relative_to(SOURCE)
        test = TESTS / relative.parent / f"test_{relative.name}"
        if not path.name.startswith("__") and not test.exists() and relative.as_posix() not in ELSEWHERE:
            missing.append(relative.as_posix())
    assert not missing, f"add tests for {missing}, named for their modules"


def test_what_is_tested_elsewhere_is_tested_there():
    assert all((TESTS.parent / place).exists() for place in ELSEWHERE.values())
