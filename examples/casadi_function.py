"""Mean and variance of an exported belief as a function of CasADi, with its Jacobian.

    from drift import Belief  # written by gp.export("numpy", "drift.py")

    moments = GaussianProcess(Belief(), num_dims=2)
    x = casadi.MX.sym("x", 2)
    solver = casadi.nlpsol("solver", "ipopt", {"x": x, "f": -moments(x)[0]}, LIMITED_MEMORY)

An optimizer must not ask for second derivatives: pass `LIMITED_MEMORY` to IPOPT.
"""

import casadi as ca
import numpy as np

LIMITED_MEMORY = {"ipopt.hessian_approximation": "limited-memory"}


class GaussianProcess(ca.Callback):
    """The mean and the variance of a belief at a point."""

    def __init__(self, belief, num_dims):
        ca.Callback.__init__(self)
        self.belief, self.num_dims, self.jacobian_kept = belief, num_dims, None
        self.construct("gp", {})

    def get_n_in(self):
        return 1

    def get_n_out(self):
        return 1

    def get_sparsity_in(self, i):
        return ca.Sparsity.dense(self.num_dims, 1)

    def get_sparsity_out(self, i):
        return ca.Sparsity.dense(2, 1)

    def eval(self, arguments):
        return [ca.DM(self.belief.predict(np.array(arguments[0]).ravel()))]

    def has_jacobian(self):
        return True

    def get_jacobian(self, name, names_in, names_out, options):
        self.jacobian_kept = _Jacobian(self.belief, self.num_dims, name, options)  # CasADi does not keep it
        return self.jacobian_kept


class _Jacobian(ca.Callback):
    def __init__(self, belief, num_dims, name, options):
        ca.Callback.__init__(self)
        self.belief, self.num_dims = belief, num_dims
        self.construct(name, options)

    def get_n_in(self):
        return 2

    def get_n_out(self):
        return 1

    def get_sparsity_in(self, i):
        return ca.Sparsity.dense(2 if i else self.num_dims, 1)

    def get_sparsity_out(self, i):
        return ca.Sparsity.dense(2, self.num_dims)

    def eval(self, arguments):
        return [ca.DM(np.stack(self.belief.linearize(np.array(arguments[0]).ravel())[2:]))]
