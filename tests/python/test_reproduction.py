"""The reproduction on made-up data: tasks on a cluster that loses a worker, the store, the declared numbers."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from agepath import age_path
from agepath.baselines import corrupt, fingerprints, fit_rival

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import reproduction_tasks  # noqa: E402

from reproduction import cluster, data, declared, methods, printed  # noqa: E402
from reproduction.__main__ import ours  # noqa: E402
from reproduction.declared import Task  # noqa: E402
from reproduction.page import write  # noqa: E402
from reproduction.store import Row, Store  # noqa: E402
from reproduction.summary import Results, figure, paired  # noqa: E402

PAPER = Path(os.environ.get("AGEPATH_PAPER", ROOT.parent / "shared/paper")) / "gaga.tex"

TINY = """
label = "tab:tiny"
title = "A tiny table"
kind = "table"
methods = ["original", "acs", "mospl", "agepath-up", "agepath-default"]

[defaults]
ages = [0.5, 8.0]
pacing = "linear"
noise = 0.2
mospl = { population = 6, generations = 2 }

[[cells]]
name = "numbers"
data = "numbers"
model = "lasso"
alpha = 0.01
printed = { acs = [0.5, 0.1], gaga = [0.4, 0.1] }

[[cells]]
name = "classes"
data = "classes"
model = "logistic"
C = 1.0
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A table of two cells, with its data."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.2 * rng.standard_normal(120)
    for name, target in (("numbers", y), ("classes", np.where(y > 0, "a", "b"))):
        pd.DataFrame(X).assign(target=target).to_csv(tmp_path / f"{name}.csv.gz", index=False)
    monkeypatch.setenv("AGEPATH_DATA", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(Path(__file__).parent)]))
    data.hash_of.cache_clear()
    data.load.cache_clear()
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/tiny.toml").write_text(TINY)
    yield declared.tables(tmp_path / "tables")["tab:tiny"]
    data.hash_of.cache_clear()
    data.load.cache_clear()


def naps(count, method="nap", **spec):
    return {f"{method}{k:030d}": Task("tab:x", "x", {"data": "numbers", **spec}, k, method) for k in range(count)}


def test_a_table_on_two_workers_one_of_which_is_killed(tiny, tmp_path):
    todo = declared.tasks(tiny, runs=2)
    with Store(tmp_path / "s.sqlite") as store, cluster.connected(None, 2, 2.0) as client:
        tasks = cluster.missing(todo, store)
        assert len(tasks) == 20
        assert cluster.run(tasks, store, client, limit=60) == {"ok": 20}

        # One of two workers is killed while both are at work: nothing is lost, what it had is done again.
        victim = min(client.run(os.getpid).values())
        threading.Timer(1.5, os.kill, (victim, signal.SIGKILL)).start()
        told = cluster.run(naps(12), store, client, limit=30, function=reproduction_tasks.behave)
        assert told == {"ok": 12}
        attempts = [row.attempts for row in store.rows() if row.method == "nap"]
        assert max(attempts) == 2 and attempts.count(2) <= 2

        # Everything is there: nothing is left to do, and the numbers make sense.
        assert cluster.missing(todo, store) == {}
        results = Results(store, [tiny], runs=2)
        numbers, classes = tiny.cells
        for protocol in ("theirs", "honest"):
            assert results.figure(tiny, numbers, "agepath-up", protocol, "mae").runs == 2
            assert results.figure(tiny, classes, "agepath-up", protocol, "accuracy").mean > 0.7
        path = results.parts(tiny, numbers, "agepath-up", "theirs")[0]
        assert path["complete"] and path["kkt"] < 1e-9 and path["turning"] > 3
        # No candidate of theirs can beat the best of the path's by the test rows by much: it has them all.
        acs = results.figure(tiny, numbers, "acs", "theirs", "mae").mean
        assert results.figure(tiny, numbers, "agepath-up", "theirs", "mae").mean < 1.1 * acs
        assert results.compare(tiny, numbers, "theirs", "mae").runs == 2

        page = write(store, tmp_path / "docs").read_text()
        assert "Nothing of this table was run." in page and "Errata of the formulas" in page
        assert (tmp_path / "docs/reproduction/results.csv").read_text().count("\n") > 40


def test_what_fails_dies_or_takes_too_long_is_recorded_and_tried_once_more(tiny, tmp_path):
    tasks = {**naps(1, "fails"), **naps(1, "slow"), **naps(1, "dies"), **naps(2, "once", folder=str(tmp_path)), **naps(2)}
    begun = time.monotonic()
    with Store(tmp_path / "s.sqlite") as store, cluster.connected(None, 2, 2.0) as client:
        told = cluster.run(tasks, store, client, limit=1.0, function=reproduction_tasks.behave)
        rows = {row.key: row for row in store.rows()}
    assert told == {"failed": 1, "time": 1, "died": 1, "ok": 4}
    assert time.monotonic() - begun < 30
    by_method = {row.method: row for row in rows.values()}
    assert (by_method["fails"].status, by_method["fails"].attempts) == ("failed", 2)
    assert "ValueError: on purpose" in by_method["fails"].error
    assert (by_method["slow"].status, by_method["slow"].attempts) == ("time", 2)
    assert (by_method["dies"].status, by_method["dies"].attempts) == ("died", 2)
    assert (by_method["once"].status, by_method["once"].attempts) == ("ok", 2)
    assert (by_method["nap"].status, by_method["nap"].attempts) == ("ok", 1)


def stored(store, tasks):
    for task in tasks:
        engine = methods.engine_of(task.method)
        store.put(Row(cluster.key_of(task), task.table, task.cell, task.run, task.method, engine, "ok", 1, 0.1, {}, None))


def test_a_run_goes_on_where_it_was_and_a_changed_engine_asks_for_what_it_changed(tiny, tmp_path, monkeypatch):
    tasks = declared.tasks(tiny, runs=2)
    with Store(tmp_path / "s.sqlite") as store:
        stored(store, tasks[:7])
        assert len(cluster.missing(tasks, store)) == len(tasks) - 7
        stored(store, tasks[7:])
        assert cluster.missing(tasks, store) == {}
        # More runs: only those.
        assert {t.run for t in cluster.missing(declared.tasks(tiny, runs=3), store).values()} == {2}

        real = fingerprints()
        monkeypatch.setattr(methods, "fingerprints", lambda: {**real, "path": "changed"})
        assert {t.method for t in cluster.missing(tasks, store).values()} == {"agepath-up", "agepath-default"}
        monkeypatch.setattr(methods, "fingerprints", lambda: {"path": "changed", "rivals": "changed"})
        assert len(cluster.missing(tasks, store)) == len(tasks)
        monkeypatch.undo()

    with Store(tmp_path / "s.sqlite") as store:
        monkeypatch.setenv("AGEPATH_DATA", str(tmp_path))
        assert cluster.missing(tasks, store) == {}
        # Another file: the cells that read it.
        with open(tmp_path / "numbers.csv.gz", "ab") as file:
            file.write(b"\0")
        data.hash_of.cache_clear()
        assert {t.cell for t in cluster.missing(tasks, store).values()} == {"numbers"}


def test_two_machines_share_the_work(tiny, tmp_path):
    tasks = declared.tasks(tiny, runs=2)
    keys = [cluster.key_of(task) for task in tasks]
    shares = [[k for k in keys if ours(k, f"{n}/3")] for n in (1, 2, 3)]
    assert sorted(sum(shares, [])) == sorted(keys)
    with Store(tmp_path / "a.sqlite") as a, Store(tmp_path / "b.sqlite") as b:
        stored(a, tasks[:8])
        stored(b, tasks[5:])
        first = next(a.rows())
        a.put(Row(**{**first.__dict__, "status": "time"}))
        b.put(Row(**{**first.__dict__, "status": "ok"}))
        known = len(a.status())
        assert a.merge(tmp_path / "b.sqlite") == len(tasks) - known + 1
        assert a.counts() == {"ok": len(tasks)}
        assert a.merge(tmp_path / "b.sqlite") == 0


def test_means_and_paired_tests():
    assert str(figure([1.0, 2.0, 3.0])) == "2.000 ± 1.000 (3)"
    assert figure([]) is None and figure([1.0]).sd is None
    assert paired([1.0, 2.0], [1.0, 2.0]) == (None, "equal")
    p, test = paired([1.0, 2.0, 3.0], [1.1, 2.1, 3.11])
    assert test == "paired t" and p < 0.01
    p, test = paired(list(np.arange(10.0)), list(np.arange(10.0) + np.linspace(0.1, 0.2, 10)))
    assert test == "Wilcoxon" and p < 0.01


@pytest.mark.skipif(not PAPER.is_file(), reason=f"{PAPER} is not there")
def test_the_declared_numbers_are_the_printed_ones():
    source = PAPER.read_text(encoding="utf-8")
    tables = [table for table in declared.tables().values() if table.kind == "table"]
    assert len(tables) == 14
    count = 0
    for table in tables:
        found = printed.rows(source, table.label)
        assert len(found) == len(table.cells), table.label
        for cell, row in zip(table.cells, found):
            told = {name: value if isinstance(value, list) else [value] for name, value in cell.printed.items()}
            assert told == row, (table.label, cell.name)
            count += sum(map(len, row.values()))
        if not table.label.startswith("tab:acc"):
            for cell, (parameters, noise) in zip(table.cells, printed.parameters(source, table.label)):
                assert cell.spec["noise"] == noise
                if len(parameters) == 1:
                    assert parameters[0] in (cell.spec.get("alpha"), cell.spec.get("C"))
    assert count > 900
    # One by eye.
    assert declared.tables()["tab:acc1"].cells[7].printed["gaga"] == [0.206, 0.013]


def test_every_declared_task_has_options_that_the_engine_takes():
    for table in declared.tables().values():
        for cell in table.cells:
            assert set(methods.options_of(cell.spec)) >= {"model", "pacing", "ages"}, cell.name
            assert all(m in methods.RIVALS or m.startswith("agepath-") or m in ("curve", "path", "points", "consistency") for m in table.methods)


def test_rivals_agree_with_the_path_where_they_must():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal(90)
    y[:9] += 4
    options = {"model": "lasso", "alpha": 0.02, "pacing": "linear", "ages": (1.0, 9.0)}
    path = age_path(X, y, direction="up", **options)
    ordinary = fit_rival("original", X, y, X[:5], **options)
    np.testing.assert_allclose(ordinary.predictions[0], path.decision_function(X[:5], np.inf), rtol=1e-7)
    acs = fit_rival("acs", X, y, X[:5], settings={"step": 0.05}, **options)
    gap = np.abs(acs.predictions - path.decision_function(X[:5], acs.age)).max(axis=1)
    assert np.median(gap) < 1e-6
    huber = fit_rival("huber-lasso", X, y, X[:5], settings={"threshold": 1e6}, **options)
    np.testing.assert_allclose(huber.predictions, ordinary.predictions, rtol=1e-6)
    front = fit_rival("mospl", X, y, X[:5], settings={"population": 6, "generations": 2}, random_state=1, **options)
    assert front.predictions.shape[1] == 5 and np.isnan(front.age).all()
    for name in ("ls-svm", "rls-svm", "re-ls-svm"):
        z = fit_rival(name, X, y, X, settings={"c": 10.0}, **options).predictions[0]
        assert np.corrcoef(z, y)[0, 1] > 0.6, name
    labels = np.where(X @ [1.0, -1.0, 0.5] > 0, 1, -1)
    found = fit_rival("robust-svm", X, labels, X, model="svm", kernel="rbf", gamma=0.5)
    assert ((found.predictions[0] > 0) == (labels > 0)).mean() > 0.9
    with pytest.raises(ValueError, match="unknown rival"):
        fit_rival("nothing", X, y, X)
    with pytest.raises(ValueError, match="threshold"):
        fit_rival("huber-lasso", X, y, X)


def test_noise_hits_the_share_it_says():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    for noise, share in (("flip:0.3", 0.3), ("margin:0.09", 0.09)):
        same, wrong, rows = corrupt(X, y, noise, random_state=3, model="logistic")
        assert len(rows) == round(200 * share) and set(np.flatnonzero(wrong != y)) == set(rows)
        np.testing.assert_array_equal(same, X)
    near = np.argsort(np.abs(X[:, 0]))[:80]
    assert np.isin(rows, near).mean() > 0.8
    spoiled, numbers, rows = corrupt(X, X[:, 0], "outliers:0.25", random_state=3, model="lasso")
    assert len(rows) == 50 and set(np.flatnonzero((spoiled != X).any(axis=1))) == set(rows)
