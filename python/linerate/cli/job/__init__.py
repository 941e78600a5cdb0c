"""What `run` and `demo` share: from words on the command line to a closed run directory.

`flags` are the options by name, `options` says what their texts mean, `fit` puts a workload on the volumes that
there are, `execute` has the plan carried out and shows the result.
"""
