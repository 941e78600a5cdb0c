"""`linerate study`: plan, run, resume and judge a study.

Open `verbs` first: a function per verb. `kind` tells a study from a workload without loading either, `laboratory` gives
a study the place where it runs, `show` writes plan and progress to a terminal, a pipe, or as JSON lines.
"""
