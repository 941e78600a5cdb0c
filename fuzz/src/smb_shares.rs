//! The list of a server's shares: the PDUs of the remote call in pieces, and the encoded list.

use linerate_smb::wire::rpc::{RpcAnswer, bound};
use linerate_smb::wire::shares::shares;

/// Bytes of a share without its texts.
const SHARE_BYTES_MIN: usize = 12;

/// The first byte is the length of the pieces; then the answer to call number 1.
pub fn smb_shares(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else { return };
    let _ = bound(bytes, 1);
    listed(bytes);
    let mut answer = RpcAnswer::default();
    for chunk in bytes.chunks(usize::from(piece) + 1) {
        match answer.add(chunk, 1) {
            Ok(false) => {}
            Ok(true) => return listed(answer.data()),
            Err(_) => return,
        }
    }
}

fn listed(result: &[u8]) {
    if let Ok(found) = shares(result) {
        assert!(found.len() * SHARE_BYTES_MIN <= result.len(), "more shares than their bytes");
        let texts: usize = found.iter().map(|share| share.name.len() + share.comment.len()).sum();
        // A unit of two bytes becomes at most three bytes of UTF-8.
        assert!(texts <= result.len() * 3 / 2, "longer texts than their bytes");
    }
}
