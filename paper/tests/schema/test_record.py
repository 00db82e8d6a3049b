from paper.schema.record import Records, UnitRecord


def record(problem, method, seed, **options):
    return UnitRecord(
        "study", problem, method, seed, "quick", {"n": 3}, {"loss": seed + 0.5}, 9.0, "machine", {}, "today", **options
    )


ALL = Records((record("a", "one", 2), record("a", "one", 0), record("a", "two", 0), record("b", "one", 1)))


def test_records_come_in_the_order_of_their_seeds():
    assert [each.seed for each in ALL.of("a", "one")] == [0, 2]
    assert ALL.outcomes("a", "one", "loss") == [0.5, 2.5]
    assert ALL.outcome("a", "one") == {"loss": 0.5}
    assert ALL.settings == {"n": 3}


def test_comparisons_use_the_seeds_that_all_have():
    shared = ALL.shared([("a", "one"), ("a", "two")])
    assert {(each.method, each.seed) for each in shared.all} == {("one", 0), ("two", 0)}
    assert ALL.shared([("a", "one"), ("b", "one")]).all == ()
    assert ALL.shared([]).all == ()


def test_the_processor_says_what_a_unit_costs_where_it_is_known():
    assert record("a", "one", 0).cost == 9.0
    assert record("a", "one", 0, processor_seconds=2.0).cost == 2.0
