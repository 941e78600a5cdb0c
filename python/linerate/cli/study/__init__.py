"""`linerate study`: plan, run, resume and judge a study.

Open `verbs` first: a function per verb. `kind` recognises a study file without loading it, `laboratory` gives
a study the place where it runs, `show` writes plan and progress to a terminal, a pipe, or as JSON lines.
"""
