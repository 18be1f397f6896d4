"""The paper's tables and figures, computed again: a program on the Python package, with no numerics of its own.

One file in ``tables/`` declares each table or figure; :mod:`.declared` reads them, :mod:`.methods` runs one method on one split,
:mod:`.cluster` runs all of them on Dask, :mod:`.store` keeps the results, :mod:`.page` and :mod:`.figures` show them.
"""
