"""Fitting a model to tables in files, and predicting from it."""
