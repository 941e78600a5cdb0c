"""The reader of fio job files. `conftest` has the `fio` fixture; `samples` holds job files and a maker of random ones."""
