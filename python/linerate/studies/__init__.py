"""The published studies as workload files that anyone can run; `linerate.workload.presets` knows them by name."""
