import threading

import numpy as np

from streamgp.streaming.growing import GrowingArrays


def _columns(*values):
    return [np.array(values, dtype=np.float64)[:, None], np.array(values, dtype=np.float64)]


def test_rows_are_written_behind_those_there_are():
    arrays = GrowingArrays(_columns(1.0, 2.0), _columns(3.0))
    assert arrays.extend(3, _columns(4.0, 5.0))
    inputs, counts = arrays.first(5)
    assert inputs[:, 0].tolist() == counts.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert arrays.first(2)[1].tolist() == [1.0, 2.0]


def test_only_who_holds_all_rows_may_write_behind_them():
    arrays = GrowingArrays(_columns(1.0), _columns(2.0))
    assert arrays.extend(2, _columns(3.0))
    assert not arrays.extend(2, _columns(4.0))
    assert arrays.first(3)[1].tolist() == [1.0, 2.0, 3.0]


def test_what_has_no_room_is_not_written():
    arrays = GrowingArrays(_columns(1.0), _columns(2.0))
    assert not arrays.extend(2, _columns(*range(1000)))
    assert arrays.extend(2, _columns(3.0))


def test_of_several_threads_one_writes():
    arrays, written = GrowingArrays(_columns(0.0), _columns(0.0)), []
    threads = [
        threading.Thread(
            target=lambda value=value: written.append(value) if arrays.extend(2, _columns(value)) else None
        )
        for value in range(1, 9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert arrays.first(3)[1].tolist()[2:] == written
