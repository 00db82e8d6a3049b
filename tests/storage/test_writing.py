import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streamgp.errors import SaveError
from streamgp.storage import writing
from streamgp.storage.writing import write_atomically


def put(content):
    return lambda file: file.write(content)


def test_the_file_holds_what_was_written_and_nothing_else_is_left(tmp_path):
    write_atomically(tmp_path / "a", put(b"one"))
    write_atomically(tmp_path / "a", put(b"two"))
    assert (tmp_path / "a").read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_a_symbolic_link_is_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    link.symlink_to(target)
    write_atomically(link, put(b"one"))  # a link to nothing yet
    write_atomically(link, put(b"two"))
    assert link.is_symlink()
    assert target.read_bytes() == b"two"


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "a")
    with pytest.raises(SaveError):
        write_atomically(tmp_path / "a", put(b""))


def test_an_existing_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        write_atomically(old, put(b"1"))
        write_atomically(new, put(b"1"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == 0o666 & ~0o027


def test_what_is_not_a_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SaveError, match="replaced"):
        write_atomically(tmp_path, put(b""))
    with pytest.raises(SaveError, match="device"):
        write_atomically("/dev/null", put(b""))
    with pytest.raises(SaveError, match="regular"):
        write_atomically(tmp_path / "pipe", put(b""))
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("path", ["nowhere/a", "a\0b", "x" * 300])
def test_a_path_that_cannot_be_written_is_an_error_of_ours(tmp_path, path):
    with pytest.raises(SaveError, match=r"could not be written|is not the name of a file"):
        write_atomically(tmp_path / path, put(b""))


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, put(b"old"))

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(SaveError, match="disk full"):
        write_atomically(path, put(b"new"))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


@pytest.mark.slow
def test_what_a_killed_process_left_is_removed(tmp_path):
    path = tmp_path / "file"
    code = (  # without the package, whose import takes seconds
        "import runpy, sys, time\n"
        "write_atomically = runpy.run_path(sys.argv[2])['write_atomically']\n"
        "def write(file):\n"
        "    file.write(b'half'); file.flush(); print('now', flush=True); time.sleep(60)\n"
        "write_atomically(sys.argv[1], write)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, path, writing.__file__], stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline()
        writer.send_signal(signal.SIGTERM)
    (left,) = tmp_path.iterdir()
    write_atomically(path, put(b"young"))
    assert left.exists()  # so young that its writer may be on another machine
    long_ago = time.time() - 3600
    os.utime(left, (long_ago, long_ago))
    write_atomically(path, put(b"old"))
    assert list(tmp_path.iterdir()) == [path]
