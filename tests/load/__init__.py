"""The load as Python sees it, where it needs more of a machine than `cargo test` asks for."""
