"""Jobs with filecreate, filestat or filedelete: each makes, looks up or removes the files of a structure.

`load` reads what such a job asks for and refuses what a file system workload does not do; `steps` makes the runs, and
before them the runs that make or remove files, as fio does when it starts.
"""
