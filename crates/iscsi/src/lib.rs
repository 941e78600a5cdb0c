//! Sans-I/O iSCSI (RFC 7143), initiator and target side.
