//! An iSCSI initiator: sessions and paths.
