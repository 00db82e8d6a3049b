import os
import platform

import torch

import streamgp
from streamgp.experiments.machine import _processor, describe_machine, describe_software


def test_a_machine_is_a_processor_and_cores():
    assert describe_machine().endswith((f", {os.cpu_count()} cores", ", 1 core"))
    assert describe_machine().split(",")[0]


def test_the_processor_is_the_first_that_linux_names(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nmodel name\t: Some CPU @ 2.0 GHz\nmodel name\t: Other\n")
    assert _processor(path) == "Some CPU @ 2.0 GHz"


def test_elsewhere_python_names_the_processor(tmp_path):
    assert _processor(tmp_path / "absent") == (platform.processor() or platform.machine())


def test_software_has_the_versions_that_run():
    software = describe_software()
    assert set(software) == {"python", "streamgp", "torch", "gpytorch", "botorch"}
    assert software["streamgp"] == streamgp.__version__
    assert software["torch"].split("+")[0] == torch.__version__.split("+")[0]
