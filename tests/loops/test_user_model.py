import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import Search
from streamgp.testing.tolerances import tolerance

SMALL = Search(num_restarts=1, raw_samples=8, max_iterations=5)


def told(**options):
    optimizer = sg.Optimizer([(100.0, 180.0), (0.0, 0.1)], seed=0, search=SMALL, **options)
    X = optimizer.ask(8)
    optimizer.tell(X, 30.0 + 0.1 * X[:, 0] - 50.0 * X[:, 1])
    return optimizer, X


def test_the_model_predicts_what_the_loop_predicts_in_the_users_units():
    optimizer, X = told(maximize=False)
    posterior, prediction = optimizer.model().posterior(X[:3]), optimizer.predict(X[:3])
    limits = tolerance(torch.float64, scale=100.0)
    assert_close(posterior.mean.squeeze(-1), prediction.mean, **limits)
    assert_close(posterior.variance.squeeze(-1).sqrt(), prediction.std, **limits)


def test_outcomes_that_are_far_too_bad_come_back_through_the_bend():
    optimizer, X = told()
    optimizer.tell(X[:1] + 0.01, torch.tensor([-1e6], dtype=torch.float64))
    mean = optimizer.model().posterior(X[:3]).mean.squeeze(-1)
    assert_close(mean, optimizer.predict(X[:3]).mean, **tolerance(torch.float64, scale=100.0))
