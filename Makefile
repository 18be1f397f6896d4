# Everything a change has to pass. The first run builds the dependencies and takes minutes; later ones take seconds.
.PHONY: test fmt clippy unit doc demo

test: fmt clippy unit doc

fmt:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets --locked -- -D warnings

# The development profile is optimised (see Cargo.toml), so the tests are fast without a second build in release mode.
unit:
	cargo test --workspace --locked

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

demo:
	cargo run --release --locked -- demo
