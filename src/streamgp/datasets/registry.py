"""The data sets, with the addresses and checksums of their files.

The licence of a repository was read there. That of the original data is the one that is commonly stated, and should be
confirmed before the data is passed on.
"""

from streamgp.checks import check_choice
from streamgp.datasets.sources import DataFile, DataSet

__all__ = ["DATASETS", "find_dataset", "registered_file"]

_GITHUB = "https://raw.githubusercontent.com"
_BUI = f"{_GITHUB}/thangbui/streaming_sparse_gp/d95081b8a67316981088172124bc44e3c2235e49/data"
_COGP = f"{_GITHUB}/trungngv/cogp/3b07f621ff11838e89700cfb58d26ca39b119a35/data/fx"
_DISARM = (
    f"{_GITHUB}/disarm-platform/adaptive_sampling_simulation_r_functions/732d067646e03aa1b6b603e775c2c4429b31a90f"
    "/data_inputs"
)
_ERMON = f"{_GITHUB}/ermongroup/bayes-opt/5937c5bdb3a30c256227ab34315357ba79079123"
_EVANS = f"{_GITHUB}/treforevans/uci_datasets/f0737523712fe66a1640e4b980b927e8490b58eb/uci_datasets"
_WETZEL = f"{_GITHUB}/sjwetzel/PublicTwinNeuralNetworkRegression/8d61acc568a312bf38cca6c651eba08d9293d354/data"
_CCPP = f"{_GITHUB}/grumpyjump/CCPP/b2209b145ed7ba0072fbaa2a8b30b3aed2cf2a5b"
_MALARIA = f"{_GITHUB}/joebrew/malariaecon/8cd4984c8a935d77f41c13c4c9cadbc9209a3730/data/malaria_atlas_project"
_IMPERIAL = f"{_GITHUB}/mrc-ide/RTSS-CE/bc57929fde4436f545876fe7d518026714bf77d7/01_data"
_RDATASETS = f"{_GITHUB}/vincentarelbundock/Rdatasets/1dcc2bf5f955cc1224a3e1307256e1fe86b68dae/csv"
_UCI = "https://archive.ics.uci.edu"
_UCI_LICENSE = "CC BY 4.0 (UCI); packaging MIT"


def _uci_files(name: str, data_sha256: str, mask_sha256: str) -> tuple[DataFile, ...]:
    return (
        DataFile(
            f"uci/{name}_data.csv.gz",
            "columns centred, target last, no header",
            f"{_EVANS}/{name}/data.csv.gz",
            data_sha256,
        ),
        DataFile(
            f"uci/{name}_test_mask.csv.gz",
            "10 splits, one column each, 1 = test",
            f"{_EVANS}/{name}/test_mask.csv.gz",
            mask_sha256,
        ),
    )


_BANANAS = DataSet(
    "bananas",
    "two interleaved classes in two dimensions",
    "400 + 4900",
    "free for research (KEEL); packaging Apache-2.0",
    "https://sci2s.ugr.es/keel/dataset.php?cod=182",
    (
        DataFile(
            "banana/banana_train_x.txt",
            "inputs of training",
            f"{_BUI}/banana_train_x.txt",
            "f1d50b70028cc99ce658f16419357dc55b5c7ce97c1854493176e1728f4e69b8",
        ),
        DataFile(
            "banana/banana_train_y.txt",
            "labels of training, -1 or 1",
            f"{_BUI}/banana_train_y.txt",
            "6cbb537327965075dd104ac6181eabd6aec374407d8a9e64661721aba0f4371d",
        ),
        DataFile(
            "banana/banana_test_x.txt",
            "inputs of the test",
            f"{_BUI}/banana_test_x.txt",
            "74305b60ec7fce46789ffd175906dc5893f4720618973ebd83b3ef4b2e06d6e5",
        ),
        DataFile(
            "banana/banana_test_y.txt",
            "labels of the test, -1 or 1",
            f"{_BUI}/banana_test_y.txt",
            "48e9a7a309a75984ff5a409ae4cb7fbf5dc363a06efcbe2a3a145264ef4e5d9b",
        ),
    ),
)

_TOY = DataSet(
    "toy",
    "one-dimensional streaming regression of Bui et al. (2017)",
    "150",
    "Apache-2.0",
    "",
    (
        DataFile(
            "toy1d/reg_toy_x.txt",
            "inputs",
            f"{_BUI}/reg_toy_x.txt",
            "858d8bb74bd9833b3b10bb4f099cd91d9abedcc9847f36b39f8c635c914c58ef",
        ),
        DataFile(
            "toy1d/reg_toy_y.txt",
            "targets",
            f"{_BUI}/reg_toy_y.txt",
            "407179953c1a035c0a37d8476c3263872e4ec0dd1ee54a7f4a5340498f89d0e9",
        ),
    ),
)

_EXCHANGE_RATES = DataSet(
    "exchange_rates",
    "currencies and metals against the US dollar, each trading day of 2007",
    "251",
    "academic, non-commercial use (PACIFIC Exchange Rate Service)",
    "http://fx.sauder.ubc.ca/data.html",
    (
        DataFile(
            "fx/fx2007-processed.csv",
            "rates without header, -1 = missing",
            f"{_COGP}/fx2007-processed.csv",
            "584adb9788b20912be9665d9e757bbb275dece21a970169ff622a7700ab5ab90",
        ),
        DataFile(
            "fx/fxdata2007.csv",
            "the same with header and dates",
            f"{_COGP}/fxdata2007.csv",
            "159feb2a48da253181e20ac9e47d886fe8bc2a5e12cd17120a6f39b4500300b7",
        ),
    ),
)


def _country(code: str, country: str, sha256: str) -> DataFile:
    name = f"{code}_data.csv"
    content = f"{country}: coordinates, 6 covariates, prevalence"
    return DataFile(f"hotspots/{name}", content, f"{_DISARM}/{name}", sha256)


_HOTSPOTS = DataSet(
    "hotspots",
    "prevalence of a neglected tropical disease at villages of four countries",
    "4 × 1500",
    "none stated",
    "",
    (
        _country("civ", "Côte d'Ivoire", "40aad15d19fb7079dcc786e466d490d6c030694bee50eca12f02c30fb422cf12"),
        _country("hti", "Haiti", "b92d587c6693acf482707ffae0456f2a625099586749bc0b8245c84b2e8f01e0"),
        _country("mwi", "Malawi", "1adb1fcc303c113d8b52a9db3a7884a926f1f9a220922630544538b5d1c694da"),
        _country("phl", "Philippines", "62b17766e9af5ef9e4d7430180175740faef204645105b98ad6419701419af9b"),
    ),
)

_LASER = DataSet(
    "laser",
    "pulse energy and magnet settings of the LCLS free-electron laser",
    "4074",
    "none stated",
    "",
    (
        DataFile(
            "laser/lcls_data.csv.gz",
            "time, pulse energy and settings, with header",
            f"{_ERMON}/data.csv",
            "0a1e7d36cc55e14c21c0a16c55c381da7454bd814861874028801c48d694dfe5",
            unpacked_sha256="f5f1a375895ca49408fdea61749ce80689312aa1e96a6595cf9eadd976212ae5",
        ),
    ),
)

_PROTEIN = DataSet(
    "protein",
    "tertiary structure of proteins (CASP); target log(1 + RMSD)",
    "45730",
    _UCI_LICENSE,
    f"{_UCI}/dataset/265/physicochemical+properties+of+protein+tertiary+structure",
    _uci_files(
        "protein",
        "f709d0107c3ee90ab019b9e5d77fc2ae182158958cb70b1903236a51334fd01b",
        "22afe05e8d17c428558d78a77efeecc08d58004b6c95741d1c533c3207c69fe9",
    ),
)

_PROTEIN_RAW = DataSet(
    "protein_raw",
    "the same proteins in original units; target RMSD",
    "45730",
    "CC BY 4.0 (UCI)",
    _PROTEIN.home,
    (
        DataFile(
            "uci/CASP_raw.csv.gz",
            "target first, with header",
            f"{_WETZEL}/CASP.csv",
            "044e4b7b0b81e3fd3e0fdf5d9f18ce3a4d67a628a1a86a4e46b10b6cea9b472b",
            derivation="the leading '# ' of the header removed, compressed by gzip",
        ),
    ),
)

_ELEVATORS = DataSet(
    "elevators",
    "control of the elevators of an aircraft",
    "16599",
    "free for research (Torgo); packaging MIT",
    "https://www.dcc.fc.up.pt/~ltorgo/Regression/elevators.html",
    _uci_files(
        "elevators",
        "e39bc18a80ec3611e4fd76d0f86ee377e96ba21b568b9997576d538dafe56b7b",
        "9fe662eacca95ae2c9301cbc4c4134e55d58e903cb0cfb683771ffdd2d248eb5",
    ),
)

_SKILLCRAFT = DataSet(
    "skillcraft",
    "skill of players of a strategy game",
    "3338",
    _UCI_LICENSE,
    f"{_UCI}/dataset/272/skillcraft1+master+table+dataset",
    _uci_files(
        "skillcraft",
        "41233f5ea6bf596b04aa64f5eaf9bf4489ddeec53524fe2cc46d75bc7d480c0e",
        "d97279b0da7415b80b3a0e8b6acb552bc7f974dc42f142a23a74f645b414736e",
    ),
)

_POWERPLANT = DataSet(
    "powerplant",
    "output of a combined-cycle power plant",
    "9568",
    "CC BY 4.0 (UCI)",
    f"{_UCI}/dataset/294/combined+cycle+power+plant",
    (
        DataFile(
            "uci/powerplant.csv.gz",
            "target last, with header",
            f"{_CCPP}/Folds5x2_pp.xlsx",
            "d9615c315323c4ab910842a567f045e3f8d90129f5bfcd880072664b5de3efa9",
            derivation="the first sheet exported to CSV, compressed by gzip",
        ),
    ),
)

_MALARIA_SET = DataSet(
    "malaria",
    "malaria in Nigeria in 2015, a stand-in for the map of 2017 that the paper uses",
    "43111",
    "CC BY 3.0 (Malaria Atlas Project); repositories none stated",
    "https://data.malariaatlas.org",
    (
        DataFile(
            "malaria/nigeria_pfpr_2015_standin.csv.gz",
            "coordinates, rate, and two assumed standard deviations",
            f"{_MALARIA}/2015_Nature_Africa_PR.2015.tif",
            "8497689e9f8cf12b3c73ce678ae0b7ea8456d790c40c0324c7f33114af727f78",
            derivation="the raster cropped to Nigeria; both standard deviations are assumptions and not of the atlas",
        ),
        DataFile(
            "malaria/nigeria_pfpr_2000_2015.csv.gz",
            "coordinates, and the rate in each year",
            f"{_MALARIA}/2015_Nature_Africa_PR.2000.tif",
            "ff276a344421ab8f18ba239f2dc9d0d4c1dc6940b4fe10f0eb72e08791542f13",
            derivation="16 rasters, one for each year until 2015, cropped to Nigeria and rounded to 1e-6",
        ),
        DataFile(
            "malaria/nigeria_admin0_pfpr_ci_2000_2019.csv",
            "national rates with 95 % limits",
            f"{_IMPERIAL}/00_PfPR_table_Global_admin0_2000-2019.csv",
            "e4d0b4913f45e5594238ad13960a08f4c31cd8b55beb75dd0035b8a5a8d8b633",
            derivation="the rows of Nigeria",
        ),
    ),
)

_CARBON_DIOXIDE = DataSet(
    "carbon_dioxide",
    "carbon dioxide at Mauna Loa, each month from 1959 to 1997",
    "468",
    "CC BY 4.0 (Scripps); packaging GPL-3",
    "https://scrippsco2.ucsd.edu",
    (
        DataFile(
            "streams/mauna_loa_co2_monthly_1959_1997.csv.gz",
            "row, time and value, with header",
            f"{_RDATASETS}/timeSeriesDataSets/co2_ts.csv",
            "bb2d5a9305b3445e92435936309d8e587f84f76d4ff879af638e09e0c2ca3c68",
            unpacked_sha256="16f9baa6f3986f31d5b4585d14f5479471a719906638626570ea96faab038807",
        ),
    ),
)

DATASETS = (
    _BANANAS,
    _TOY,
    _EXCHANGE_RATES,
    _HOTSPOTS,
    _MALARIA_SET,
    _PROTEIN,
    _PROTEIN_RAW,
    _ELEVATORS,
    _SKILLCRAFT,
    _POWERPLANT,
    _LASER,
    _CARBON_DIOXIDE,
)


def find_dataset(name: str) -> DataSet:
    """The data set of a name."""
    by_name = {dataset.name: dataset for dataset in DATASETS}
    return by_name[check_choice(name, tuple(by_name), "name")]


def registered_file(name: str) -> tuple[DataFile, DataSet]:
    """The file of a name, and the data set that it belongs to."""
    by_name = {file.name: (file, dataset) for dataset in DATASETS for file in dataset.files}
    return by_name[check_choice(name, tuple(by_name), "name")]
