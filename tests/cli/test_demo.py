import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from streamgp.cli.app import app
from streamgp.cli.demo import Agreement, Belief, compare


def run_demo(output: Path, *arguments: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Run the command and read its table: (exact GP, before or after) -> (RMSE, largest distance in sd)."""
    result = CliRunner().invoke(app, ["demo", "--output", str(output), *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert f"Picture: {output}" in result.output
    rows = re.findall(r"│ (\S.*?) +│ (before|after) +│ +([\d.]+) │ +([\d.]+) │", result.output)
    return {(name, stage): (float(rmse), float(largest)) for name, stage, rmse, largest in rows}


def test_distances_follow_their_definition():
    ones = torch.ones(4, dtype=torch.float64)
    reference = Belief(mean=0 * ones, variance=4 * ones)
    belief = Belief(mean=torch.tensor([0.0, 0.0, 0.0, 6.0], dtype=torch.float64), variance=ones)
    assert compare(belief, reference) == Agreement(rmse=3.0, largest=3.0)


@pytest.mark.slow
def test_the_demo_prints_four_comparisons_and_writes_a_picture(tmp_path):
    picture = tmp_path / "demo.png"
    table = run_demo(picture, "--steps", "3")
    assert {stage for _, stage in table} == {"before", "after"}
    assert len(table) == 4
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [picture]


@pytest.mark.slow
def test_the_same_seed_prints_the_same_table(tmp_path):
    first = run_demo(tmp_path / "first.png", "--steps", "3", "--seed", "1")
    assert run_demo(tmp_path / "second.png", "--steps", "3", "--seed", "1") == first
    assert run_demo(tmp_path / "third.png", "--steps", "3", "--seed", "2") != first


@pytest.mark.slow
def test_a_converged_sparse_gp_stays_close_to_the_exact_gp_through_conditioning(tmp_path):
    table = run_demo(tmp_path / "demo.png")
    for stage in ("before", "after"):
        rmse, largest = table["with the sparse GP's kernel", stage]
        assert rmse < 0.02
        assert largest < 0.2
        rmse, largest = table["fitted by itself", stage]
        assert rmse < 0.05
        assert largest < 0.5
