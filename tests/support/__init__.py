"""What tests of several rooms share: tools and rights (`need`), patience, rigs and samples.

Open this file first.

- `need`: programs of peers and rights; a missing one skips the test, or fails it in `.ci/run`.
- `patience`: tests that a busy machine may spoil.
- `serving`, `traffic`, `simulated`: an array that serves, traffic in a lab, a laboratory without hardware.
- `loop`: a block device over a file. `cleared`: runs that may overwrite their volumes.
- `samples`: results, histograms and studies of known content.
"""
