import re

import pytest

from paper.datasets import DATASETS, check_location, find_dataset, locate
from streamgp.errors import OptionError

FILES = [file for dataset in DATASETS for file in dataset.files]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_has_a_fixed_address_and_a_checksum(file):
    assert re.fullmatch(r"https://raw\.githubusercontent\.com/[\w.-]+/[\w.-]+/[0-9a-f]{40}/.*", file.address)
    assert all(re.fullmatch("[0-9a-f]{64}", sha256) for _, sha256 in file.forms)


def test_names_are_unique():
    assert len({dataset.name for dataset in DATASETS}) == len(DATASETS)
    assert len({file.name for file in FILES}) == len(FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_of_the_mirror_has_its_checksum(data_directory, file):
    location = locate(file)
    assert location is not None
    assert check_location(location).is_relative_to(data_directory)


def test_an_unknown_data_set_is_refused_with_the_names_that_exist():
    with pytest.raises(OptionError, match=r"name must be one of 'bananas', .*'malaria'.* but is 'banana'"):
        find_dataset("banana")
