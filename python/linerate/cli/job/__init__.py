"""What `run` and `demo` share: from words on the command line to a closed run directory.

`flags` are the options by name, `options` says what their texts mean, `execute` has the plan carried out and shows the
result.
"""
