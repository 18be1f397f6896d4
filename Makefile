# Everything a change has to pass. The first run builds the dependencies and takes minutes; later ones take seconds.
.PHONY: test fmt clippy unit own-factor doc independent browser screenshot bench decide paper demo docs package soak

test: fmt clippy unit own-factor doc independent docs browser

fmt:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets --locked -- -D warnings

# The development profile is optimised (see Cargo.toml), so the tests are fast without a second build in release mode.
unit:
	cargo test --workspace --locked

# A crate outside the library with a loss and a pacing of its own; it checks what it finds.
own-factor:
	cargo run --locked -p own-factor

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# The command checked by numpy, scipy and scikit-learn, which share no code with the library; the Python package, built
# as a wheel, in the company it is used in.
independent: package
	cargo build --release --locked
	.venv/bin/python -m pytest -q -n 2 tests/python/test_sklearn_checks.py
	.venv/bin/python -m pytest -q tests/python --ignore tests/python/test_sklearn_checks.py
	.venv/bin/python -m pytest -q --doctest-modules --pyargs agepath

# The Python package as users install it.
package: .venv/ready
	.venv/bin/pip install --quiet --no-deps .

# The user guide, its five examples executed; a warning is an error.
docs: package
	.venv/bin/python -m sphinx -q -W --keep-going -b html docs docs/_build

.venv/ready: tests/python/requirements.txt bench/requirements.txt docs/requirements.txt reproduction/requirements.txt
	python3 -m venv .venv
	.venv/bin/pip install --quiet -r tests/python/requirements.txt -r bench/requirements.txt -r docs/requirements.txt -r reproduction/requirements.txt
	touch $@

# The report in headless Chromium, opened from disk with the network off; screenshots go to target/screenshots.
browser: tests/browser/node_modules/.package-lock.json
	cargo build --release --locked
	node --test tests/browser/report.test.mjs

# The picture in the README.
screenshot: tests/browser/node_modules/.package-lock.json
	cargo build --release --locked
	node tests/browser/screenshot.mjs

tests/browser/node_modules/.package-lock.json: tests/browser/package-lock.json tests/browser/install.sh
	tests/browser/install.sh
	touch $@

# The exact path against warm-started ACS in scikit-learn; minutes, nearly all of them ACS.
bench: .venv/ready
	cargo build --release --locked
	.venv/bin/python bench/run.py

# Test error and suspects beside other methods on corrupted data; an hour, most of it the kernel paths of three sets.
decide: .venv/ready
	cargo build --release --locked
	.venv/bin/pip install --quiet -r bench/decide-requirements.txt
	.venv/bin/python bench/decide.py

# Writers killed at random moments and in pairs, 200 and 50 times; a million changed files for the readers, and
# fifty thousand changed results; an hour.
soak:
	AGEPATH_SOAK=200 cargo test --locked -p agepath-cli --test results _writer -- --nocapture
	AGEPATH_SOAK=1000000 cargo test --locked -p agepath --test mutations -- --nocapture

# A small version of every table and figure of the paper; minutes. `python -m reproduction run all` is the whole.
paper: package
	.venv/bin/python -m reproduction run all --small --limit 60
	.venv/bin/python -m reproduction show --small

demo:
	cargo run --release --locked -- demo
