import pytest
import torch
from torch.testing import assert_close

from streamgp.acquisition.entropy_table import expected_entropy, make_table
from streamgp.testing.tolerances import approximation, judgement

# Prevalences 0.02, 0.1, 0.5 and 0.9 on the logit scale, 0.1 on the probit scale.
LINKS = [("logit", -3.892), ("logit", -2.197), ("logit", 0.0), ("logit", 2.197), ("probit", -1.282)]


@pytest.mark.parametrize(("link", "latent"), LINKS)
def test_quadrature_equals_a_sum_over_a_fine_grid(link, latent):
    mean = latent + torch.tensor([-4.0, -0.3, 0.0, 0.2, 3.0, 9.0], dtype=torch.float64)
    deviation = torch.tensor([0.05, 0.4, 1.0, 2.0, 5.0], dtype=torch.float64).unsqueeze(-1)
    f = torch.linspace(latent, latent + 60.0, 30_001, dtype=torch.float64)
    p = torch.sigmoid(f) if link == "logit" else torch.special.ndtr(f)
    entropy = torch.special.entr(p) + torch.special.entr(1 - p)
    mean, deviation = torch.broadcast_tensors(mean, deviation)
    density = torch.distributions.Normal(mean.unsqueeze(-1), deviation.unsqueeze(-1)).log_prob(f).exp()
    expected = torch.trapezoid(entropy * density, f)
    found = expected_entropy(mean, deviation, link=link, latent=latent)
    assert_close(found, expected, **approximation(1e-5, "quadrature", scale=0.01))


@pytest.mark.slow
@pytest.mark.parametrize(("link", "latent"), LINKS)
def test_the_table_is_within_a_ten_thousandth_of_quadrature(rng, link, latent):
    def uniform(low, high):
        return low + (high - low) * torch.rand(20, 100, generator=rng, dtype=torch.float64)

    deviation = uniform(-4.6, 2.3).exp()
    near, far = uniform(-5.0, 5.0) * deviation, uniform(-15.0, 15.0)
    distance = torch.where(uniform(0.0, 1.0) < 0.5, near, far)
    expected = expected_entropy(latent + distance, deviation, link=link, latent=latent)
    found = make_table(link, latent).look_up(
        distance.float(), deviation.square().float(), torch.empty(1, *distance.shape, 2)
    )
    assert float((found - expected).abs().max()) < 1e-4


def test_what_is_off_the_table_is_held_at_its_edge():
    table = make_table("logit", -2.197)
    distance = torch.tensor([[-1e4, 1e4, 0.0]])
    found = table.look_up(distance, torch.tensor([[1.0, 1.0, 0.0]]), torch.empty(1, 1, 3, 2))
    half = 0.5 * float(torch.distributions.Bernoulli(logits=torch.tensor(-2.197)).entropy())
    assert_close(found, torch.tensor([[0.0, 0.0, half]]), **judgement(relative=0.02, absolute=1e-6))
