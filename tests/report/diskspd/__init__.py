"""Results in the form of diskspd's XML, against the run's figures and diskspd's names."""
