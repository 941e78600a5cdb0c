//! Sans-I/O SCSI: what a disk logical unit answers.
