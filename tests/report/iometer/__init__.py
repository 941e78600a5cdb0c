"""Results in the form of Iometer's result file, against the run's figures and Iometer's columns."""
