"""What a model of BoTorch's says of itself: a line of text, and a small table for notebooks."""

from collections.abc import Sequence
from typing import Any

from streamgp.display import html_table
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["describe_model", "model_table"]


def describe_model(
    name: str, processes: Sequence[Any], likelihoods: Sequence[AbstractLikelihood | None], *, num_dims: int
) -> str:
    """What a model is, in a line: `OnlineGP(2 outputs, 30 inducing points, 6 inputs, Gaussian, Poisson)`.

    Args:
        name: Of the class.
        processes: What is known, of each output or of all together.
        likelihoods: One for each output.
        num_dims: Number of inputs.
    """
    facts = _facts(processes, likelihoods, num_dims)
    counts = [_counted(facts[key], key) for key in ("outputs", "inducing points", "inputs")]
    batch = [f"batch {facts['leading axes']}"] if facts["leading axes"] else []
    return f"{name}({', '.join([*counts, facts['likelihood'], *batch])})"


def model_table(
    name: str, processes: Sequence[Any], likelihoods: Sequence[AbstractLikelihood | None], *, num_dims: int
) -> str:
    """The same as a table of HTML, escaped and without scripts."""
    return html_table(name, _facts(processes, likelihoods, num_dims))


def _facts(processes: Sequence[Any], likelihoods: Sequence[AbstractLikelihood | None], num_dims: int) -> dict[str, Any]:
    reference = processes[0].reference
    names = ["no likelihood" if each is None else type(each).__name__ for each in likelihoods]
    sizes = list(dict.fromkeys(process.num_inducing for process in processes))
    return {
        "outputs": len(likelihoods),
        "inducing points": sizes[0] if len(sizes) == 1 else ", ".join(map(str, sizes)),
        "inputs": num_dims,
        "likelihood": ", ".join(dict.fromkeys(names)),
        "leading axes": tuple(processes[0].batch_shape),
        "type": str(reference.dtype).removeprefix("torch."),
    }


def _counted(number: Any, plural: str) -> str:
    return f"1 {plural.removesuffix('s')}" if number == 1 else f"{number} {plural}"
