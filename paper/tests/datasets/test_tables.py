import gzip

import pytest
import torch

from paper.datasets import read_table


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_table_is_read_with_any_line_ends_compressed_or_not(tmp_path, monkeypatch, end, is_compressed):
    content = end.join(['"a",b,c', "1,x,2.5", "-3,y,1e3", ""]).encode()
    path = tmp_path / "table.csv"
    path.write_bytes(gzip.compress(content) if is_compressed else content)
    monkeypatch.setattr("paper.datasets.tables.find_file", lambda name: path)
    expected = torch.tensor([[1.0, 2.5], [-3.0, 1000.0]], dtype=torch.float64)
    assert torch.equal(read_table("table.csv", num_header=1, columns=[0, 2]), expected)
    assert torch.equal(read_table("table.csv", num_header=1, columns=[0, 2], num_rows=1), expected[:1])
