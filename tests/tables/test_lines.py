import gzip
import io
import random
import threading
import time

import pytest

from streamgp.errors import FileFormatError, OptionError
from streamgp.tables.lines import Lines, Position

CONTENT = b"a,b\r\n1,2\n3,\xc3\xa4\nlast"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", ["data.csv", "data"])
def test_lines_are_read_whatever_the_name(tmp_path, pack, name):
    path = tmp_path / name
    path.write_bytes(pack(CONTENT))
    with Lines(str(path)) as lines:
        assert list(lines) == ["a,b\r\n", "1,2\n", "3,ä\n", "last"]
        assert lines.position.num_lines == 4


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("num_lines", [2, 20_000])
def test_lines_may_all_end_with_carriage_returns(tmp_path, pack, num_lines):
    expected = [f"{i},\u00e4\n" for i in range(num_lines)]
    path = tmp_path / "data.csv"
    path.write_bytes(pack("".join(expected).replace("\n", "\r").encode()))
    with Lines(str(path)) as lines:
        assert list(lines) == expected


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input_is_read(monkeypatch, pack):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(pack(CONTENT))))
    with Lines("-") as lines:
        assert lines.name == "standard input"
        assert len(list(lines)) == 4


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfx,y\n")
    with Lines(str(tmp_path / "a")) as lines:
        assert next(lines) == "x,y\n"


def test_an_earlier_position_is_found_again(tmp_path):
    (tmp_path / "a").write_bytes(CONTENT)
    with Lines(str(tmp_path / "a")) as lines:
        next(lines), next(lines)
        position, rest = lines.position, list(lines)
    with Lines(str(tmp_path / "a")) as lines:
        lines.skip_to(position)
        assert list(lines) == rest


@pytest.mark.parametrize("content", [CONTENT.replace(b"1", b"7"), b"a,b\r\n"], ids=["other", "shorter"])
def test_another_source_is_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(CONTENT)
    with Lines(str(tmp_path / "a")) as lines:
        next(lines), next(lines)
        position = lines.position
    (tmp_path / "a").write_bytes(content)
    with (
        Lines(str(tmp_path / "a")) as lines,
        pytest.raises(FileFormatError, match=r"after 2 lines, but .* are not the ones that were read then.*--fresh"),
    ):
        lines.skip_to(position)


def test_what_is_not_text_is_refused_line_by_line(tmp_path):
    (tmp_path / "a").write_bytes(b"good\nb\xff\xfed\ngood\n")
    with Lines(str(tmp_path / "a")) as lines:
        assert next(lines) == "good\n"
        with pytest.raises(UnicodeDecodeError):
            next(lines)
        assert next(lines) == "good\n"
        assert lines.position.num_lines == 3


def test_damaged_compression_is_refused_with_the_line(tmp_path):
    digits = "".join(f"{random.Random(i).random()}\n" for i in range(20_000))
    packed = gzip.compress(digits.encode())
    (tmp_path / "a").write_bytes(packed[: len(packed) // 2])
    with Lines(str(tmp_path / "a")) as lines, pytest.raises(FileFormatError, match=r"is damaged after line \d+: "):
        list(lines)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"nothing.csv cannot be read .*or pass - for standard input"):
        Lines(str(tmp_path / "nothing.csv"))


def test_the_start_is_before_all_lines():
    assert Position() == (0, 0)


def test_a_file_that_grows_is_followed_line_by_line(tmp_path):
    path = tmp_path / "growing.csv"
    path.write_bytes(b"x\n1\n")

    def grow():
        for piece in (b"2", b"2\n3", b"\n", b"\n"):
            time.sleep(0.15)
            with path.open("ab") as file:
                file.write(piece)

    writer = threading.Thread(target=grow)
    with Lines(str(path), is_followed=True) as lines:
        writer.start()
        assert [next(lines) for _ in range(5)] == ["x\n", "1\n", "22\n", "3\n", "\n"]
        followed = lines.position
    writer.join()
    with Lines(str(path)) as lines:
        assert len(list(lines)) == 5
        assert lines.position == followed


def test_a_file_that_shrinks_and_compressed_ones_cannot_be_followed(tmp_path):
    path, packed = tmp_path / "rotated.csv", tmp_path / "packed.csv.gz"
    path.write_bytes(b"x\n12345\n")
    packed.write_bytes(gzip.compress(b"x\n1\n"))
    with Lines(str(path), is_followed=True) as lines:
        assert [next(lines), next(lines)] == ["x\n", "12345\n"]
        path.write_bytes(b"x\n")
        with pytest.raises(FileFormatError, match="has become shorter"):
            next(lines)
    with pytest.raises(OptionError, match="cannot be followed"):
        Lines(str(packed), is_followed=True)
