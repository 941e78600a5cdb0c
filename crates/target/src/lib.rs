//! An iSCSI array: portals, connections and volumes.
