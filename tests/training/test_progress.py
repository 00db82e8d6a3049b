from streamgp.training.progress import progress_bar


def test_without_a_bar_the_users_function_is_called_as_it_is():
    def callback(value):
        raise AssertionError

    with progress_bar(is_shown=False, callback=callback) as reports:
        assert reports.on_iteration is callback
        assert reports.on_stage is None
    with progress_bar(is_shown=False, callback=None) as reports:
        assert reports.on_iteration is None


def test_a_bar_shows_the_steps_and_calls_the_users_function(capsys):
    called = []
    with progress_bar(is_shown=True, callback=called.append) as reports:
        reports.on_iteration(1.5)
        reports.on_stage(4)
        reports.on_iteration(2.5)
        reports.on_iteration(3.5)
    assert called == [1.5, 2.5, 3.5]
    shown = capsys.readouterr().out
    assert "2 steps" in shown
    assert "left" in shown
