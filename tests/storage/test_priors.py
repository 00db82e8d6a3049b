import pytest
import torch
from gpytorch.kernels import RBFKernel
from gpytorch.priors import GammaPrior, HalfCauchyPrior, HalfNormalPrior, LogNormalPrior, NormalPrior, SmoothedBoxPrior

from streamgp.errors import FileFormatError
from streamgp.storage.priors import describe_priors, rebuild_prior


@pytest.mark.parametrize(
    "prior",
    [GammaPrior(3.0, 6.0), HalfCauchyPrior(0.5), HalfNormalPrior(0.5), LogNormalPrior(0.1, 2.0), NormalPrior(0.1, 2.0)],
    ids=lambda prior: type(prior).__name__,
)
def test_a_described_prior_has_the_same_density(prior):
    kernel = RBFKernel(lengthscale_prior=prior)
    again = rebuild_prior(describe_priors(kernel)["lengthscale"])
    x = torch.tensor([0.3, 1.0, 4.0])
    assert type(again) is type(prior)
    assert torch.equal(again.log_prob(x), prior.log_prob(x))


def test_a_prior_that_cannot_be_rebuilt_is_left_out_only_where_nothing_is_learned():
    kernel = RBFKernel(lengthscale_prior=SmoothedBoxPrior(0.1, 2.0))
    assert describe_priors(kernel) == {"lengthscale": None}
    assert describe_priors(kernel.requires_grad_(False)) == {}


def test_arguments_of_another_prior_are_refused():
    described = describe_priors(RBFKernel(lengthscale_prior=GammaPrior(3.0, 6.0)))["lengthscale"]
    with pytest.raises(FileFormatError, match="a GammaPrior with other arguments"):
        rebuild_prior(described | {"arguments": [1.0]})
