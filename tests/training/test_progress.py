from streamgp.training.progress import progress_bar


def test_without_a_bar_the_users_function_is_called_as_it_is():
    def callback(value):
        raise AssertionError

    with progress_bar(is_shown=False, callback=callback) as report:
        assert report is callback
    with progress_bar(is_shown=False, callback=None) as report:
        assert report is None


def test_a_bar_shows_the_steps_and_calls_the_users_function(capsys):
    called = []
    with progress_bar(is_shown=True, callback=called.append) as report:
        report(1.5)
        report(2.5)
    assert called == [1.5, 2.5]
    assert "2 steps" in capsys.readouterr().out
