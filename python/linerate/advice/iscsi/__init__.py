"""An array over the network: `read` asks it by SendTargets, login and SCSI; `sheet` makes facts of the answer."""
