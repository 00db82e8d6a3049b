import random

import pytest
import torch

from streamgp.errors import FileFormatError
from streamgp.gp.archive import read_archive, write_archive

DESCRIPTION = {"format": "test", "version": 3, "numbers": [0.1, 2], "text": "Matérn"}


def contents():
    generator = torch.Generator().manual_seed(0)
    return {
        "matrix": torch.randn(7, 5, generator=generator, dtype=torch.float64),
        "by columns": torch.randn(5, 7, generator=generator).mT,
        "scalar": torch.tensor(1.5, dtype=torch.float64),
        "counts": torch.arange(4),
        "empty": torch.zeros(0, 3),
        "truth": torch.tensor([True, False]),
    }


def is_same(read):
    description, tensors = read
    expected = contents()
    return (
        {key: description[key] for key in DESCRIPTION} == DESCRIPTION
        and tensors.keys() == expected.keys()
        and all(torch.equal(tensors[key], expected[key]) for key in expected)
    )


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "file.sgp"
    write_archive(path, DESCRIPTION, contents())
    description, tensors = read_archive(path, format="test", version=3)
    assert is_same((description, tensors))
    for key, tensor in contents().items():
        assert tensors[key].dtype == tensor.dtype
        assert tensors[key].stride() == tensor.stride()
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_contents_give_the_same_bytes(tmp_path):
    for name in "ab":
        write_archive(tmp_path / name, DESCRIPTION, contents())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_another_format_is_refused_with_a_sentence(tmp_path):
    write_archive(tmp_path / "a", DESCRIPTION, {})
    with pytest.raises(FileFormatError, match="a does not hold a other, but 'test'"):
        read_archive(tmp_path / "a", format="other", version=3)
    with pytest.raises(FileFormatError, match="has format version 3, but this version of streamgp reads 4"):
        read_archive(tmp_path / "a", format="test", version=4)
    with pytest.raises(FileFormatError, match=r"There is no file .*nothing"):
        read_archive(tmp_path / "nothing", format="test", version=3)


def test_a_file_with_changed_bytes_is_refused_or_reads_the_same(tmp_path):
    path = tmp_path / "file.sgp"
    write_archive(path, DESCRIPTION, contents())
    original, draw = path.read_bytes(), random.Random(0)
    refusals = []
    for _ in range(800):
        damaged = bytearray(original)
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            assert is_same(read_archive(path, format="test", version=3))
        except FileFormatError as error:
            refusals.append(str(error))
    assert all("file.sgp" in each for each in refusals)
    assert len(refusals) > 600  # the other bytes are dates and permissions of the parts


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "file.sgp"
    write_archive(path, DESCRIPTION, contents())
    original = path.read_bytes()
    for length in range(0, len(original), 7):
        path.write_bytes(original[:length])
        with pytest.raises(FileFormatError, match=r"file\.sgp is damaged or was not written by streamgp"):
            read_archive(path, format="test", version=3)


def test_a_file_with_foreign_json_is_refused(tmp_path):
    path = tmp_path / "file.sgp"
    write_archive(path, {"format": "test", "version": 3}, {"a": torch.zeros(2)})
    path.write_bytes(path.read_bytes().replace(b"a.npy", b"b.npy"))
    with pytest.raises(FileFormatError, match="damaged"):
        read_archive(path, format="test", version=3)


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "file.sgp"
    write_archive(path, DESCRIPTION, contents())

    def fail(_):
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            write_archive(path, DESCRIPTION, {})
    assert list(tmp_path.iterdir()) == [path]
    assert is_same(read_archive(path, format="test", version=3))
