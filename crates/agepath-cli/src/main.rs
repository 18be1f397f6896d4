//! The `agepath` command.

fn main() {}
