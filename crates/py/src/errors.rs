//! Failures as classes of `linerate.errors`, by whose fault they are. The message describes what went wrong and where;
//! the hint describes what to do about it.

use linerate_blame::Blame;
use linerate_fabric::FabricError;
use linerate_iscsi_initiator::ToolError;
use linerate_iscsi_target::ArrayError;
use linerate_load::{BulkError, HistogramError, RunError, SpecError, WriteRefusal};
use linerate_smb::{SmbRefusal, SmbToolError};
use linerate_storage::controller::StorageError;
use pyo3::prelude::*;

mod classes {
    use pyo3::import_exception;

    import_exception!(linerate.errors, UserError);
    import_exception!(linerate.errors, PeerError);
    import_exception!(linerate.errors, HostError);
    import_exception!(linerate.errors, InternalError);
}

/// An exception of the class for `blame`.
pub(crate) fn blamed(blame: Blame, message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    let arguments = (message.into(), hint.into());
    match blame {
        Blame::User => classes::UserError::new_err(arguments),
        Blame::Peer => classes::PeerError::new_err(arguments),
        Blame::Host => classes::HostError::new_err(arguments),
        Blame::Us => classes::InternalError::new_err(arguments),
    }
}

/// JSON that Python made and Rust refuses: the two sides disagree about the seam.
pub(crate) fn refused_json(what: &str, error: &serde_json::Error) -> PyErr {
    blamed(
        Blame::Us,
        format!("the data plane refuses the {what}: {error}"),
        "please report this with the file",
    )
}

const WRONG_LOGON: &str = "correct user and password: smb://user@host with LINERATE_SMB_PASSWORD, LINERATE_SMB_USER where \
     the URL has no user, or user and secret of the volume in a TOML file; a user of a domain is domain;user";
const WRONG_CREDENTIALS: &str = "correct user and secret: in the URL (iscsi://user%secret@host), in the file, or in \
     LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD";

/// What to do about a refusal of the server of a share.
fn share_hint(refusal: SmbRefusal) -> &'static str {
    match refusal {
        SmbRefusal::NoSpace => {
            "make room on the share or raise the user's quota there, or use less of it (--size): blocks of a new file \
             take their room when they are first written"
        }
        SmbRefusal::NoAccess => {
            "permit it on the server, in the share's permissions and in those of its folder, or use another user \
             (smb://user@host or LINERATE_SMB_USER)"
        }
        SmbRefusal::NoShare => "`linerate discover smb://user@host` lists the shares of a server",
        SmbRefusal::ShareClosed => {
            "offer the share again on the server, and see its log for why it was closed; then run again"
        }
        SmbRefusal::WrongLogon => WRONG_LOGON,
        SmbRefusal::NoNtlm => {
            "permit NTLMv2 for this user on the server (Windows: policy Restrict NTLM; Samba: ntlm auth), or mount the \
             share with the host's own client (mount -t cifs -o sec=krb5) and give the file below the mount point"
        }
        SmbRefusal::NoHost => {
            "permit this host's address on the server (Samba: hosts allow, hosts deny; a NAS: its list of hosts, its \
             firewall or its list of blocked addresses)"
        }
        SmbRefusal::NoDialect => {
            "permit a later SMB version on the server (Samba: server max protocol; Windows and most NAS: SMB2 and SMB3), \
             and leave smb.dialect out"
        }
        SmbRefusal::Account => {
            "unlock or enable the account on the server, or renew its password there, before another attempt; or use \
             another user (smb://user@host or LINERATE_SMB_USER)"
        }
    }
}

/// What to do about a volume that takes no write.
fn write_hint(refusal: WriteRefusal) -> &'static str {
    match refusal {
        WriteRefusal::FullDisk => {
            "make room in the file system (`df` shows it) or raise the quota, or use less of it: --size, or smaller \
             files; blocks of a new file take their room when they are first written"
        }
        WriteRefusal::FullArray => {
            "add disks to the array's pool or remove snapshots and volumes there, or use less of the volume (--size); if \
             its disks are sparse files, their file system may be full (`linerate array show`)"
        }
        WriteRefusal::Protected => {
            "permit writes to this volume on the array, or name another one; a workload that only reads can use it"
        }
    }
}

pub(crate) fn run_error(error: &RunError) -> PyErr {
    match error {
        RunError::Share { refusal, .. } => {
            return blamed(error.blame(), error.to_string(), share_hint(*refusal));
        }
        RunError::NoWrite { refusal, .. } => {
            return blamed(error.blame(), error.to_string(), write_hint(*refusal));
        }
        _ => {}
    }
    let hint = match error.blame() {
        _ if matches!(error, RunError::Miscompare { .. }) => {
            "see whether another host writes to this volume while it is verified; if none does, suspect the storage"
        }
        _ if matches!(error, RunError::Credentials { .. }) => WRONG_CREDENTIALS,
        _ if matches!(error, RunError::NotActive { .. }) => {
            "the array is up, and this port does not serve the LUN now: take a path to one that is active, or have the \
             array make this one active (an array of Linerate: `linerate array set-access`)"
        }
        _ if matches!(error, RunError::Spec(SpecError::Value { key, .. }) if key == "cpus") => {
            "name CPUs that this process may use (`taskset -p $$` shows them), or leave --cpus out"
        }
        Blame::User => {
            "correct the workload file or the target; `linerate discover` shows LUNs of an array or shares of a server"
        }
        Blame::Peer => {
            "see whether the array or server is up and reachable, and its log; `linerate discover` tries to reach it"
        }
        Blame::Host => "see `linerate run --help` for the driver, CPU and file options",
        Blame::Us => "please report this with the run directory",
    };
    blamed(error.blame(), error.to_string(), hint)
}

pub(crate) fn histogram_error(error: &HistogramError) -> PyErr {
    blamed(Blame::User, error.to_string(), "the latency log is damaged")
}

pub(crate) fn bulk_error(error: &BulkError) -> PyErr {
    let hint = match error.blame() {
        Blame::User => "correct the addresses, the namespaces or the rate of the LAN stream",
        Blame::Peer => "see whether the stream's sink is up, and whether the network leads there",
        Blame::Host => "the host does not allow the stream: see the message",
        Blame::Us => "please report this",
    };
    blamed(error.blame(), error.to_string(), hint)
}

pub(crate) fn array_error(error: &ArrayError) -> PyErr {
    let hint = match error.blame() {
        Blame::User => "correct the array file",
        Blame::Host | Blame::Peer => "the host does not allow it: see the message",
        Blame::Us => "please report this",
    };
    blamed(error.blame(), error.to_string(), hint)
}

pub(crate) fn storage_error(error: &StorageError) -> PyErr {
    if let Some(way_out) = error.way_out() {
        return blamed(error.blame(), error.to_string(), way_out);
    }
    let hint = match error.blame() {
        Blame::User => "`linerate array show` lists what exists, with its state",
        Blame::Peer => "see the partner's state and the network to it; then try again",
        Blame::Host => "see which disks have failed: `linerate array show`",
        Blame::Us => "please report this",
    };
    blamed(error.blame(), error.to_string(), hint)
}

pub(crate) fn fabric_error(error: &FabricError) -> PyErr {
    let hint = match error.blame() {
        Blame::User => "correct the topology or the change",
        Blame::Host => {
            "TAP interfaces need /dev/net/tun and CAP_NET_ADMIN in their namespace; `linerate lab probe` looks for both"
        }
        // A fabric has no peer.
        Blame::Us | Blame::Peer => "please report this with the log",
    };
    blamed(error.blame(), error.to_string(), hint)
}

pub(crate) fn tool_error(error: &ToolError) -> PyErr {
    let (blame, hint) = match error.blame() {
        _ if error.is_wrong_credentials() => (Blame::User, WRONG_CREDENTIALS),
        Blame::User => (Blame::User, "correct the address, the secret or the options"),
        Blame::Peer => (Blame::Peer, "see the array's log, and the network on the way to it"),
        Blame::Host => (Blame::Host, "this host does not allow it: see the message"),
        Blame::Us => (Blame::Us, "please report this"),
    };
    blamed(blame, error.to_string(), hint)
}

pub(crate) fn smb_error(error: &SmbToolError) -> PyErr {
    let refusal = match error {
        SmbToolError::Failed(failure) => failure.refusal,
        SmbToolError::Io(error) => error.refusal(),
        _ => None,
    };
    let hint = match (error.blame(), refusal) {
        (_, Some(refusal)) => share_hint(refusal),
        (Blame::User, None) => "correct the address or the user",
        (Blame::Peer, None) => "see the server's log, and the network on the way to it",
        (Blame::Host, None) => "this host does not allow it: see the message",
        (Blame::Us, None) => "please report this",
    };
    blamed(error.blame(), error.to_string(), hint)
}
