import torch

from paper.schema.rounding import rounded


def test_numbers_keep_the_digits_that_are_asked_for():
    assert rounded(123456.7) == 123500.0
    assert rounded(0.000123456, num_digits=2) == 0.00012


def test_a_tensor_becomes_lists_of_numbers_of_its_shape():
    assert rounded(torch.tensor([[1.23456, -2.0], [0.0, 4e-9]], dtype=torch.float64)) == [[1.235, -2.0], [0.0, 4e-9]]
    assert rounded(torch.tensor(1.23456)) == 1.235
    assert rounded(torch.zeros(0)) == []
