import pytest
from matplotlib.figure import Figure

from streamgp.cli.pictures import check_output, save_figure


def test_a_picture_replaces_the_one_before_it(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")
    save_figure(Figure(), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_picture_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")

    def fail(self, target, **_):
        target.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        save_figure(Figure(), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a.png", "a.PDF", "a.svg"])
def test_an_output_that_can_be_written_passes(tmp_path, name):
    assert check_output(tmp_path / name) is None
