import os
import platform
import shutil
import subprocess
from pathlib import Path

import torch

import paper
import streamgp
from paper.engine.machine import _commit, _processor, describe_machine, describe_software


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
    libraries = {"torch", "gpytorch", "linear_operator", "botorch", "numpy", "scipy", "scikit-learn"}
    assert set(software) - {"commit"} == {"python", "streamgp", "instructions", *libraries}
    assert software["streamgp"] == streamgp.__version__
    assert software["torch"].split("+")[0] == torch.__version__.split("+")[0]


def test_the_commit_is_that_of_the_clone_and_says_if_sources_changed(tmp_path):
    assert _commit(tmp_path) == ""
    if shutil.which("git") is None:
        return
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")

    def git(*arguments: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *names, *arguments], check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    head = git("rev-parse", "--short=10", "HEAD").strip()
    assert _commit(tmp_path) == head
    (tmp_path / "paper" / "results").mkdir(parents=True)
    (tmp_path / "paper" / "results" / "b").write_text("2")
    assert _commit(tmp_path) == head
    (tmp_path / "src" / "a.py").write_text("3")
    assert _commit(tmp_path) == f"{head}+"


def test_a_clone_records_its_commit():
    root = Path(paper.__file__).parents[1]
    if shutil.which("git") and (root / ".git").exists():
        assert describe_software()["commit"] == _commit(root) != ""
