"""The noisy sine of `paper.studies.sine` as a table: the paper's O-SGPR beside ours and batch fits."""

import torch
from rich.table import Table

from paper.schema.configuration import read_configuration
from paper.studies.sine import STUDY


def sine_table(num_seeds: int) -> Table:
    """RMSE to the truth, the mean over seeds."""
    torch.set_num_threads(1)
    settings = read_configuration(STUDY, "full").settings
    table = Table(
        title=f"Noisy sine, p = {settings.num_inducing}: RMSE to the truth after T rows, means of {num_seeds} seeds"
    )
    for column in ("method", *(f"T = {mark}" for mark in settings.marks)):
        table.add_column(column, justify="left" if column == "method" else "right")
    for method, label in STUDY.methods.items():
        errors = torch.tensor([STUDY.run("sine", method, seed, settings)["rmse"] for seed in range(num_seeds)])
        table.add_row(label, *(f"{error:.4f}" for error in errors.mean(0).tolist()))
    return table
