from paper.datasets import DataFile

PLAIN = DataFile("a/b.csv", "numbers", "https://example.org/b.csv", "1" * 64)


def test_a_file_is_stored_as_its_address_gives_it():
    assert PLAIN.is_fetchable
    assert PLAIN.forms == (("a/b.csv", "1" * 64),)


def test_a_compressed_file_may_be_stored_unpacked():
    packed = DataFile("a/b.csv.gz", "numbers", "https://example.org/b.csv", "1" * 64, unpacked_sha256="2" * 64)
    assert packed.forms == (("a/b.csv.gz", "1" * 64), ("a/b.csv", "2" * 64))


def test_a_derived_file_cannot_be_fetched():
    assert not DataFile("a/b.csv", "numbers", "https://example.org/c.csv", "1" * 64, derivation="sorted").is_fetchable
