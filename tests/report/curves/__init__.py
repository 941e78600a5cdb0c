"""Results in fio's form, against fio itself and against programs that read it."""
