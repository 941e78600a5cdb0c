"""The workload room: readers of vdbench and TOML files, targets, plans. `conftest` has the `read` fixture of
most tests."""
