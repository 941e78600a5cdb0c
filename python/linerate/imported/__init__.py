"""Results of other tools, read from their files and written as run directories.

Open `recognise.py` first: it tells the tool from the content of a file. `fio.py`, `vdbench.py`, `iometer.py` and
`diskspd.py` read one format each, `write.py` makes the run directory. A figure that a file does not give is None.
"""

from linerate.imported.recognise import KINDS, ReadFile, ResultFormat, read_file
from linerate.imported.write import write_imported

__all__ = ["KINDS", "ReadFile", "ResultFormat", "read_file", "write_imported"]
