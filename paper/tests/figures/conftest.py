import matplotlib as mpl

mpl.use("agg")
