import pytest

STUDY = """
[parameters.temperature]
type = "real"
low = 100
high = 180

[parameters.loading]
type = "real"
low = 1e-4
high = 1.0
log = true

[parameters.solvent]
type = "categorical"
values = ["water", "-OH"]

[objectives.yield]
maximize = true

[settings]
num_initial = 4
acquisition = "thompson"
"""


@pytest.fixture
def study(tmp_path):
    """The file of a small study."""
    path = tmp_path / "reaction.toml"
    path.write_text(STUDY)
    return path
