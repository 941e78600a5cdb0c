"""The reader of fio job files. `conftest` has the `fio` fixture of most tests; `random_jobs` makes job files for a
comparison with fio itself."""
