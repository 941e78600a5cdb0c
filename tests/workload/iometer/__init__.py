"""The reader of Iometer configurations. `conftest` has the `icf` fixture of most tests; `writer` makes the texts."""
