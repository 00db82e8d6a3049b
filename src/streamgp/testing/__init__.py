"""Laws, references and random problems for tests; needs the `test` extra."""
