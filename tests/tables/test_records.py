import pytest

from streamgp.errors import FileFormatError, OptionError
from streamgp.tables.lines import Lines, Position
from streamgp.tables.records import open_reader


def read(path, content, format="auto"):
    path.write_text(content, encoding="utf-8", newline="")
    with Lines(str(path)) as lines:
        reader = open_reader(lines, format)
        return reader.names, list(reader.records())


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_has_named_fields_and_line_numbers(tmp_path, delimiter):
    content = '\nx,y\n1,2\n\n"3\n4",5\r\n6,7'.replace(",", delimiter)
    names, records = read(tmp_path / "a", content)
    assert names == ("x", "y")
    assert [dict(each.fields) for each in records] == [
        {"x": "1", "y": "2"},
        {"x": "3\n4", "y": "5"},
        {"x": "6", "y": "7"},
    ]
    assert [each.line for each in records][::2] == [3, 7]
    assert records[-1].position.num_lines == 7


def test_json_lines_have_named_fields_and_line_numbers(tmp_path):
    names, records = read(tmp_path / "a", '{"x": 1, "y": null}\n\n{"y": "b", "x": 2.5}\n')
    assert names == ("x", "y")
    assert [each.fields for each in records] == [{"x": 1, "y": None}, {"y": "b", "x": 2.5}]
    assert [each.line for each in records] == [1, 3]


@pytest.mark.parametrize(
    ("content", "issue"),
    [
        ("x,y\n1,2\n1\n3,4\n", "it has 1 fields, but the header has 2"),
        ("x,y\n1,2\n1,2,3\n3,4\n", "it has 3 fields, but the header has 2"),
        (f"x,y\n1,2\n{'9' * 200_000},1\n3,4\n", "it cannot be read as CSV (field larger"),
        ('{"x": 1}\n{"x": 1\n{"x": 3}\n', "it cannot be read as JSON (Expecting"),
        ('{"x": 1}\n[1, 2]\n{"x": 3}\n', "it holds a list and not an object"),
    ],
)
def test_a_bad_record_is_told_and_the_next_one_read(tmp_path, content, issue):
    _, records = read(tmp_path / "a", content)
    assert [each.fields is None for each in records] == [False, True, False]
    assert records[1].issue.startswith(issue)


@pytest.mark.parametrize("content", ["x,y\n1,2\n3,4\n5,6\n", '{"x": 1}\n{"x": 2}\n{"x": 3}\n'], ids=["csv", "jsonl"])
@pytest.mark.parametrize("num_read", [0, 1, 2, 3])
def test_records_go_on_after_an_earlier_position(tmp_path, content, num_read):
    _, records = read(tmp_path / "a", content)
    position = records[num_read - 1].position if num_read else Position()
    with Lines(str(tmp_path / "a")) as lines:
        reader = open_reader(lines)
        reader.skip_to(position)
        assert list(reader.records()) == records[num_read:]


@pytest.mark.parametrize(
    ("content", "format", "sentence"),
    [
        ("", "auto", "has no rows. Pass CSV with a header, or JSON lines"),
        ("\n \n", "auto", "has no rows"),
        ("1,2\n3,4\n", "auto", "must name the columns, but holds numbers: 1,2. Put a line with names in front"),
        ("x,y,x\n", "auto", r"several columns of the names \['x'\]"),
        ("x,y\n", "jsonl", "first line of .* must be a JSON object .* it cannot be read as JSON"),
        ("[1]\n", "jsonl", "it holds a list and not an object. Pass --format csv"),
    ],
)
def test_a_source_without_names_is_refused(tmp_path, content, format, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        read(tmp_path / "a", content, format)


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(OptionError, match="format must be one of 'auto', 'csv', 'jsonl', but is 'xml'"):
        read(tmp_path / "a", "x\n", "xml")


def test_what_is_not_text_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"\x89PNG\xff\n")
    with Lines(str(tmp_path / "a")) as lines, pytest.raises(FileFormatError, match="is not text in UTF-8"):
        open_reader(lines)


@pytest.mark.parametrize("rest", ["", 'f,"6"\n'])
def test_an_unbalanced_quote_is_one_bad_line_and_the_others_are_read(tmp_path, rest):
    content = f'x,y\na,1\n"b,2\nc,3\nd,4\n{rest}'
    _, records = read(tmp_path / "a", content)
    assert [None if each.fields is None else each.fields["x"] for each in records][:4] == ["a", None, "c", "d"]
    assert records[1].line == 3
    assert "a quote is opened in it" in records[1].issue
    assert [each.position.num_lines for each in records] == list(range(2, 2 + len(records)))


def test_a_quote_that_opens_a_long_text_is_one_bad_line_too(tmp_path):
    content = "x,y\n" + '"b,2\n' + "".join(f"{i},1\n" for i in range(500))
    _, records = read(tmp_path / "a", content)
    assert len(records) == 501
    assert [each.fields is None for each in records].count(True) == 1


@pytest.mark.parametrize("content", ["x,y\n1,2\n3,4", '{"x": 1}\n{"x": 3}'])
def test_a_last_line_without_an_end_is_told(tmp_path, content):
    _, records = read(tmp_path / "a", content)
    assert [each.is_ended for each in records] == [True, False]
    _, records = read(tmp_path / "a", content + "\n")
    assert all(each.is_ended for each in records)


def test_columns_without_a_name_are_counted(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,,y,\n1,,2,\n", encoding="utf-8")
    with Lines(str(path)) as lines, pytest.raises(FileFormatError, match=r"2 columns without a name\. Name all"):
        open_reader(lines)
