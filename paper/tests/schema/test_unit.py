from paper.schema.unit import Unit


def test_a_unit_says_what_it_is():
    assert str(Unit("tiny", "mine", "left", "sum", 3)) == "tiny: left, sum, seed 3"
