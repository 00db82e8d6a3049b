"""Tests mirror the tree: each module has a test of its name, or is listed here with where it is tested."""

from pathlib import Path

import streamgp

SOURCE = Path(streamgp.__file__).parent
TESTS = Path(__file__).parent

# Packages whose modules are steps of one public call are tested through that call, by the suites named here.
ELSEWHERE = {
    "cli/data/fetching.py": "tests/cli/data/test_command.py",
    "cli/data/tables.py": "tests/cli/data/test_command.py",
    "cli/demo/scene.py": "tests/cli/demo/test_running.py",
    "cli/fit/command.py": "tests/cli/fit/test_running.py",
    "cli/optimize/command.py": "tests/cli/optimize/test_running.py",
    "cli/run/command.py": "tests/cli/run/test_running.py",
    "cli/run/listing.py": "tests/cli/run/test_running.py",
    "cli/stream/command.py": "tests/cli/stream/test_running.py",
    "cli/stream/planning.py": "tests/cli/stream/test_running.py",
    "cli/stream/report.py": "tests/cli/stream/test_running.py",
    "cli/survey/command.py": "tests/cli/survey/test_running.py",
    "conditioning/multi_output/conditioned_gp.py": "tests/conditioning/multi_output/test_gp.py",
    "conditioning/multi_output/prediction.py": "tests/conditioning/multi_output/test_gp.py",
    "experiments/schema/figure.py": "tests/experiments/report/test_section.py",
    "experiments/schema/study.py": "tests/experiments/schema/test_configuration.py",
    "gp/coregionalization.py": "tests/conditioning/multi_output/test_gp.py",
    "loops/evidence.py": "tests/loops/test_likelier_units.py",
    "loops/exact_surrogate.py": "tests/optimizers/test_turbo.py",
    "optimizers/version1.py": "tests/storage/test_version1.py",
    "pools/version1.py": "tests/storage/test_version1.py",
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
COVERED = (
    "linalg",
    "gp",
    "likelihoods",
    "sites",
    "conditioning",
    "training",
    "models",
    "problems",
    "datasets",
    "loops",
    "optimizers",
    "pools",
    "cli",
    "experiments/analysis",
    "experiments/engine",
    "experiments/report",
    "experiments/schema",
)


def test_every_module_of_these_packages_has_a_test_of_its_name():
    modules = [*SOURCE.glob("*.py"), *(path for name in COVERED for path in (SOURCE / name).rglob("*.py"))]
    missing = []
    for path in modules:
        relative = path.relative_to(SOURCE)
        test = TESTS / relative.parent / f"test_{relative.name}"
        if not path.name.startswith("__") and not test.exists() and relative.as_posix() not in ELSEWHERE:
            missing.append(relative.as_posix())
    assert not missing, f"add tests for {missing}, named for their modules"


def test_what_is_tested_elsewhere_is_tested_there():
    assert all((TESTS.parent / place).exists() for place in ELSEWHERE.values())
