"""Data sets of the experiments: where their files are, and loaders with the paper's splits and scaling."""

from streamgp.datasets.bananas import Bananas, load_bananas
from streamgp.datasets.exchange_rates import CURRENCIES, Series, load_exchange_rates
from streamgp.datasets.files import Location, ProgressBar, check_location, find_file, locate
from streamgp.datasets.hotspots import COUNTRIES, Hotspots, load_hotspots
from streamgp.datasets.malaria import Malaria, load_malaria
from streamgp.datasets.protein import Regression, load_protein
from streamgp.datasets.registry import DATASETS, find_dataset
from streamgp.datasets.sources import DataFile, DataSet
from streamgp.datasets.tables import read_table
from streamgp.datasets.uci import UCI_NAMES, Split, load_uci

__all__ = [
    "COUNTRIES",
    "CURRENCIES",
    "DATASETS",
    "UCI_NAMES",
    "Bananas",
    "DataFile",
    "DataSet",
    "Hotspots",
    "Location",
    "Malaria",
    "ProgressBar",
    "Regression",
    "Series",
    "Split",
    "check_location",
    "find_dataset",
    "find_file",
    "load_bananas",
    "load_exchange_rates",
    "load_hotspots",
    "load_malaria",
    "load_protein",
    "load_uci",
    "locate",
    "read_table",
]
