import random
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch

from streamgp.errors import FileFormatError, SaveError, UnsupportedError
from streamgp.storage.archive import ArchiveReader, is_finite, write_archive

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


def read_all(path):
    with ArchiveReader(path) as reader:
        return reader.description, {name: reader.take(name) for name in reader.names}


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
    description, tensors = read_all(path)
    assert is_same((description, tensors))
    for key, tensor in contents().items():
        assert tensors[key].dtype == tensor.dtype
        assert tensors[key].stride() == tensor.stride()
    assert list(tmp_path.iterdir()) == [path]


def test_texts_are_read_and_objects_are_not_written(tmp_path):
    write_archive(tmp_path / "a", DESCRIPTION, {"names": np.array(["a", "Matérn"])})
    with ArchiveReader(tmp_path / "a") as reader:
        assert reader.shape_of("names") == (2,)
        assert reader.take_array("names").tolist() == ["a", "Matérn"]
        with pytest.raises(FileFormatError, match="twice"):
            reader.take("names")


def test_the_same_contents_give_the_same_bytes(tmp_path):
    for name in "ab":
        write_archive(tmp_path / name, DESCRIPTION, contents())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_tensors_that_cannot_be_saved_are_refused(tmp_path):
    for tensor in (torch.zeros(2, 2).to_sparse(), torch.zeros(2, dtype=torch.bfloat16), torch.zeros(2, device="meta")):
        with pytest.raises(UnsupportedError, match="dense"):
            write_archive(tmp_path / "a", DESCRIPTION, {"x": tensor})
    with pytest.raises(UnsupportedError, match="Keep long"):
        write_archive(tmp_path / "a", {"text": "x" * 9_000_000}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_an_error_of_ours(tmp_path):
    with pytest.raises(SaveError, match="is a directory"):
        write_archive(tmp_path, DESCRIPTION, {})


def test_a_missing_file_is_named(tmp_path):
    for path in (tmp_path / "nothing", tmp_path, "a\0b"):
        with pytest.raises(FileFormatError, match="There is no file"):
            ArchiveReader(path)


@pytest.mark.slow
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
            assert is_same(read_all(path))
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
        with pytest.raises(FileFormatError, match="damaged"):
            read_all(path)


def write_parts(path, parts, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def npy(header, content=b""):
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (400000000,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 'abc'}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (99999999999,)}",
        "{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8'}",
        "__import__('os').getcwd()",
        "[" * 90,
    ],
)
def test_an_array_that_declares_what_it_does_not_hold_is_refused(tmp_path, header):
    write_parts(tmp_path / "a", {"description.json": b'{"tensors": ["x"]}', "x.npy": npy(header, b"12345678")})
    with ArchiveReader(tmp_path / "a") as reader, pytest.raises(FileFormatError, match="damaged"):
        reader.take("x")


@pytest.mark.parametrize("text", [b"", b"[1]", b"{", b"[" * 100_000, b'{"a": 1' + b"0" * 5000 + b"}", b"\xff\xfe"])
def test_a_description_that_is_none_is_refused(tmp_path, text):
    write_parts(tmp_path / "a", {"description.json": text})
    with pytest.raises(FileFormatError, match="damaged"):
        ArchiveReader(tmp_path / "a")


def test_a_part_that_unpacks_to_more_than_the_file_is_refused_at_once(tmp_path):
    path = tmp_path / "bomb"
    write_parts(
        path, {"description.json": b'{"tensors": ["x"]}', "x.npy": bytes(50_000_000)}, compression=zipfile.ZIP_DEFLATED
    )
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="is compressed"):
            ArchiveReader(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_parts_that_overlap_are_refused(tmp_path):
    path = tmp_path / "overlap"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("description.json", b"{}")
        archive.writestr("x0.npy", bytes(10_000))
        info = archive.getinfo("x0.npy")
        for i in range(1, 50):
            other = zipfile.ZipInfo(f"x{i}.npy")
            other.header_offset, other.CRC = info.header_offset, info.CRC
            other.file_size = other.compress_size = info.file_size
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
    with pytest.raises(FileFormatError, match="overlap"):
        ArchiveReader(path)


def peak_of_opening(path):
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="damaged"):
            ArchiveReader(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("unit", [b"{},", b"[[[[0]]]],", b'{"a":0},', b'"ab",', b"1000,"])
def test_a_description_of_many_values_is_refused_before_they_are_made(tmp_path, unit):
    path = tmp_path / "many"
    text = b'{"tensors": [], "a": [' + unit * (6_000_000 // len(unit)) + b"0]}"
    write_parts(path, {"description.json": text})
    assert peak_of_opening(path) < 2 * path.stat().st_size


def test_a_file_of_very_many_parts_is_refused_before_they_are_listed(tmp_path):
    path = tmp_path / "parts"
    entry = struct.pack("<4s4B4H3L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"x"
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0, 0, len(entry) * 50_000, 0, 0)
    path.write_bytes(entry * 50_000 + end)
    assert len(zipfile.ZipFile(path).infolist()) == 50_000
    assert peak_of_opening(path) < 2 * path.stat().st_size


def test_what_would_not_be_read_back_is_not_written(tmp_path):
    with pytest.raises(UnsupportedError, match="more than would be read back"):
        write_archive(tmp_path / "a", {"format": "x", "version": 1, "many": [{}] * 200_000}, {})


@pytest.mark.parametrize("shape", [(), (0,), (3,), (100_000,), (1, 100_000), (3, 1, 50_000), (400, 400)])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_one_number_that_is_not_finite_is_found_anywhere(rng, shape, bad):
    value = torch.full(shape, 1e308, dtype=torch.float64)
    assert is_finite(value)
    assert is_finite(value.float().clamp(max=1e38).mT if len(shape) > 1 else value.long())
    if value.numel():
        place = int(torch.randint(value.numel(), (), generator=rng))
        value.view(-1)[place] = bad
        assert not is_finite(value)
        assert not is_finite(value.movedim(0, -1) if shape else value)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("part", ["description.json", "a.npy"])
def test_a_part_that_is_there_twice_is_refused(tmp_path, part):
    path = tmp_path / "file"
    write_archive(path, {"format": "x", "version": 1}, {"a": torch.zeros(2)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(part, archive.read(part))
    with pytest.raises(FileFormatError, match="there twice"):
        ArchiveReader(path)
