"""Data sets of the experiments: where their files are, and loaders with the paper's splits and scaling."""

from paper.datasets.bananas import Bananas, load_bananas
from paper.datasets.exchange_rates import CURRENCIES, Series, load_exchange_rates
from paper.datasets.files import Location, ProgressBar, check_location, find_file, locate
from paper.datasets.hotspots import COUNTRIES, Hotspots, load_hotspots
from paper.datasets.malaria import Malaria, load_malaria
from paper.datasets.protein import Regression, load_protein
from paper.datasets.registry import DATASETS, find_dataset
from paper.datasets.sources import DataFile, DataSet
from paper.datasets.tables import read_table
from paper.datasets.uci import UCI_NAMES, Split, load_uci

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
