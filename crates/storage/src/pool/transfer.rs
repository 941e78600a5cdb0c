//! Moves bytes to and from pages.
//!
//! A page that the volume's own layer owns is written in place. Any other page is copied as a whole to a new page, which is
//! mapped when the write has completed. A transaction stores the mapping after a flush. So a crash leaves either the old
//! page or the complete new one.

use super::{
    Extent,
    core::{Core, VolumeCore},
    map::{Found, LEAF_PAGES, LayerId, Layers, Pin, Slot},
};
use crate::disk::{Chunk, DiskError, NextAccess};
use bytes::{Bytes, BytesMut};
use futures::future::{join, join_all};
use std::rc::Rc;

/// Longest range that [`extent`] searches.
const EXTENT_PAGES: u64 = 64 * LEAF_PAGES;

/// The part of a transfer within one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    index: u64,
    /// First byte within the page.
    start: u64,
    len: u64,
}

fn pieces(page_bytes: u64, offset: u64, len: u64) -> impl Iterator<Item = Piece> {
    let end = offset + len;
    let cut = move |at: u64| (at < end).then(|| (at, end.min((at / page_bytes + 1) * page_bytes)));
    std::iter::successors(cut(offset), move |(_, next)| cut(*next)).map(move |(at, next)| Piece {
        index: at / page_bytes,
        start: at % page_bytes,
        len: next - at,
    })
}

/// The error of a range outside a volume of `size_bytes`, or between blocks.
pub(crate) fn check(core: &Core, size_bytes: u64, offset: u64, len: u64) -> Result<(), DiskError> {
    let block = u64::from(core.disk.block_bytes());
    let fits = offset.checked_add(len).is_some_and(|end| end <= size_bytes);
    if fits && offset.is_multiple_of(block) && len.is_multiple_of(block) {
        return Ok(());
    }
    Err(DiskError::OutOfRange { offset_bytes: offset, len_bytes: len })
}

/// Reads pages from the positions that `find` returns.
pub(crate) async fn read(
    core: Rc<Core>,
    find: impl Fn(&Layers, u64) -> Found,
    offset: u64,
    into: BytesMut,
) -> Result<BytesMut, DiskError> {
    let mut rest = into;
    // All pages are looked up at one instant, and pinned until they are read.
    let readings: Vec<_> = pieces(core.page_bytes(), offset, rest.len() as u64)
        .map(|piece| {
            let found = locate(&core, |layers| find(layers, piece.index));
            read_piece(&core, found, piece, rest.split_to(piece.len as usize))
        })
        .collect();
    let mut whole: Option<BytesMut> = None;
    for part in join_all(readings).await {
        let part = part?;
        match &mut whole {
            None => whole = Some(part),
            Some(whole) => whole.unsplit(part),
        }
    }
    Ok(whole.unwrap_or(rest))
}

/// The same without waiting; see [`crate::Disk::read_nowait`].
pub(crate) fn read_nowait(
    core: &Core,
    find: impl Fn(&Layers, u64) -> Found,
    offset: u64,
    len: u64,
    each: &mut dyn FnMut(Chunk<'_>),
) -> Option<()> {
    const ZEROS: &[u8] = &[0; 4096];
    for piece in pieces(core.page_bytes(), offset, len) {
        let found = find(&core.map.borrow().layers, piece.index);
        match found {
            Found::Page { page, .. } => {
                let mut each = |chunk: Chunk<'_>| each(chunk.in_page(&core.lent, page));
                core.disk.read_nowait(core.layout.page_offset(page) + piece.start, piece.len, &mut each)?;
            }
            Found::Zero => {
                let lens =
                    (0..piece.len).step_by(ZEROS.len()).map(|at| ZEROS.len().min((piece.len - at) as usize));
                lens.for_each(|len| each(Chunk::of_slice(&ZEROS[..len])));
            }
        }
    }
    Some(())
}

/// See [`crate::Disk::prefetch`].
pub(crate) fn prefetch(
    core: &Core,
    find: impl Fn(&Layers, u64) -> Found,
    offset: u64,
    len: u64,
    next: NextAccess,
) {
    for piece in pieces(core.page_bytes(), offset, len) {
        if let Found::Page { page, .. } = find(&core.map.borrow().layers, piece.index) {
            core.disk.prefetch(core.layout.page_offset(page) + piece.start, piece.len, next);
        }
    }
}

fn read_piece(
    core: &Rc<Core>,
    found: Located,
    piece: Piece,
    mut into: BytesMut,
) -> impl Future<Output = Result<BytesMut, DiskError>> + use<> {
    let reading = match found {
        Located::Zero => {
            into.fill(0);
            Err(into)
        }
        Located::Page { page, pin, .. } => {
            Ok((core.disk.read(core.layout.page_offset(page) + piece.start, into), pin))
        }
    };
    async move {
        match reading {
            Err(zeros) => Ok(zeros),
            Ok((reading, _pin)) => reading.await,
        }
    }
}

/// The position of a page, which is pinned.
enum Located {
    Zero,
    Page { page: u32, layer: LayerId, pin: Pin },
}

fn locate(core: &Core, find: impl FnOnce(&Layers) -> Found) -> Located {
    let map = core.map.borrow();
    match find(&map.layers) {
        Found::Zero => Located::Zero,
        Found::Page { page, layer } => Located::Page { page, layer, pin: map.pages.pin(page) },
    }
}

/// The content of a page of a volume.
pub(crate) fn find(volume: &VolumeCore, layers: &Layers, index: u64) -> Found {
    volume.found.get(layers, volume.layer.get(), index)
}

/// Writes to a volume.
pub(crate) async fn write(
    core: Rc<Core>,
    volume: Rc<VolumeCore>,
    offset: u64,
    data: Bytes,
    durable: bool,
) -> Result<(), DiskError> {
    let admission = volume.quiesce.enter().await;
    volume.check()?;
    check(&core, volume.size_bytes.get(), offset, data.len() as u64)?;
    let mut rest = data;
    let writings: Vec<_> = pieces(core.page_bytes(), offset, rest.len() as u64)
        .map(|piece| write_piece(&core, &volume, piece, rest.split_to(piece.len as usize), durable))
        .collect();
    // All of them end before the admission ends, with or without an error.
    let results = join_all(writings).await;
    drop(admission);
    let mut version = 0;
    for result in results {
        version = version.max(result?);
    }
    if durable { core.committed(version).await } else { Ok(()) }
}

/// The same without waiting, to pages that the volume owns already; see [`crate::Disk::write_nowait`].
pub(crate) fn write_nowait(
    core: &Core,
    volume: &VolumeCore,
    offset: u64,
    data: &[u8],
    durable: bool,
) -> Option<()> {
    if !volume.quiesce.is_open() {
        return None;
    }
    let (own, mut rest) = (volume.layer.get(), data);
    for piece in pieces(core.page_bytes(), offset, data.len() as u64) {
        let (now, later) = rest.split_at(piece.len as usize);
        let found = find(volume, &core.map.borrow().layers, piece.index);
        let Found::Page { page, layer } = found else { return None };
        let is_mapping_durable = || core.is_durable(core.map.borrow().pending(own, piece.index).unwrap_or(0));
        if layer != own || volume.locks.is_locked(piece.index) || durable && !is_mapping_durable() {
            return None;
        }
        core.disk.write_nowait(core.layout.page_offset(page) + piece.start, now, durable)?;
        rest = later;
    }
    Some(())
}

/// Writes within one page. Returns the change that must be durable before the write counts as durable.
async fn write_piece(
    core: &Rc<Core>,
    volume: &VolumeCore,
    piece: Piece,
    data: Bytes,
    durable: bool,
) -> Result<u64, DiskError> {
    while volume.locks.is_locked(piece.index) {
        volume.locks.wait(piece.index).await;
    }
    let own = volume.layer.get();
    match locate(core, |layers| find(volume, layers, piece.index)) {
        Located::Page { page, layer, pin: _pin } if layer == own => {
            let at = core.layout.page_offset(page) + piece.start;
            core.disk.write(at, data, durable).await?;
            Ok(core.map.borrow().pending(own, piece.index).unwrap_or(0))
        }
        elsewhere => {
            let _lock = volume.locks.lock(piece.index);
            write_anew(core, volume, piece, data, elsewhere).await
        }
    }
}

/// Writes to a new page: `data`, and the old contents around it. If these and the page are zeros, `data` is enough.
async fn write_anew(
    core: &Rc<Core>,
    volume: &VolumeCore,
    piece: Piece,
    data: Bytes,
    before: Located,
) -> Result<u64, DiskError> {
    let page_bytes = core.page_bytes();
    let mut fresh = core.take_page().await?;
    let (start, content) = if piece.len == page_bytes {
        (0, data)
    } else if fresh.is_zero() && matches!(before, Located::Zero) {
        (piece.start, data)
    } else {
        let around = BytesMut::zeroed(page_bytes as usize);
        let mut around = match &before {
            Located::Zero => around,
            Located::Page { page, .. } => core.disk.read(core.layout.page_offset(*page), around).await?,
        };
        around[piece.start as usize..][..data.len()].copy_from_slice(&data);
        (0, around.freeze())
    };
    while let Err(error) =
        core.disk.write(core.layout.page_offset(fresh.page()) + start, content.clone(), false).await
    {
        let used = match &error {
            // Only a thin disk has no space, and none of its pages counts as zero.
            DiskError::NoSpace(_) if content.len() as u64 == page_bytes => {
                core.map.borrow().pages.take_used()
            }
            _ => None,
        };
        fresh = used.ok_or(error)?;
    }
    let version = core.set_page(volume, piece.index, Slot::Page(fresh.keep()));
    core.commit_soon();
    Ok(version)
}

/// Discards a range of a volume.
pub(crate) async fn discard(
    core: Rc<Core>,
    volume: Rc<VolumeCore>,
    offset: u64,
    len: u64,
) -> Result<(), DiskError> {
    let _passage = volume.quiesce.enter().await;
    volume.check()?;
    check(&core, volume.size_bytes.get(), offset, len)?;
    clear(&core, &volume, offset, len).await
}

/// Makes a range read as zeros. The caller is admitted, or has stopped all other operations.
pub(crate) async fn clear(
    core: &Rc<Core>,
    volume: &VolumeCore,
    offset: u64,
    len: u64,
) -> Result<(), DiskError> {
    let (page_bytes, end) = (core.page_bytes(), offset + len);
    let first = offset.div_ceil(page_bytes);
    // The end of the volume counts as the end of its last page.
    let last = if end == volume.size_bytes.get() { end.div_ceil(page_bytes) } else { end / page_bytes };
    let whole = first..last.max(first);
    for piece in pieces(page_bytes, offset, len).filter(|piece| !whole.contains(&piece.index)) {
        let found = find(volume, &core.map.borrow().layers, piece.index);
        if found != Found::Zero {
            let zeros = BytesMut::zeroed(piece.len as usize).freeze();
            write_piece(core, volume, piece, zeros, false).await?;
        }
    }
    if whole.is_empty() {
        return Ok(());
    }
    let leaves = whole.start / LEAF_PAGES..(whole.end - 1) / LEAF_PAGES + 1;
    let leaves = core.map.borrow().layers.leaves_between(volume.layer.get(), None, &leaves);
    for leaf in leaves {
        let (start, end) = (leaf * LEAF_PAGES, (leaf + 1) * LEAF_PAGES);
        for index in start.max(whole.start)..end.min(whole.end) {
            clear_page(core, volume, index).await?;
        }
    }
    core.commit_soon();
    Ok(())
}

async fn clear_page(core: &Rc<Core>, volume: &VolumeCore, index: u64) -> Result<(), DiskError> {
    while volume.locks.is_locked(index) {
        volume.locks.wait(index).await;
    }
    core.check()?;
    let own = volume.layer.get();
    let (now, below) = {
        let layers = &core.map.borrow().layers;
        (find(volume, layers, index), layers.find_below(own, index))
    };
    if now == Found::Zero {
        return Ok(());
    }
    let slot = if below == Found::Zero { Slot::Below } else { Slot::Zero };
    if slot == Slot::Zero {
        core.check_room()?;
    }
    core.set_page(volume, index, slot);
    Ok(())
}

/// Makes all completed writes durable.
pub(crate) async fn flush(core: Rc<Core>) -> Result<(), DiskError> {
    let version = core.map.borrow().version();
    // Both are polled all the time: a disk whose answer is not taken would count as a disk that does not answer.
    let (flushed, committed) = join(core.disk.flush(), core.committed(version)).await;
    flushed.and(committed)
}

/// The run that begins at `offset`, of pages that are all mapped or all unmapped. It may be shorter than possible, but
/// is never empty.
pub(crate) fn extent(core: &Core, volume: &VolumeCore, offset: u64) -> Extent {
    let (page_bytes, size_bytes) = (core.page_bytes(), volume.size_bytes.get());
    let layers = &core.map.borrow().layers;
    let is_mapped = |index: u64| find(volume, layers, index) != Found::Zero;
    let first = offset / page_bytes;
    let first_is_mapped = is_mapped(first);
    let limit = size_bytes.div_ceil(page_bytes).min(first + EXTENT_PAGES);
    let end = (first + 1..limit).find(|index| is_mapped(*index) != first_is_mapped).unwrap_or(limit);
    let end_bytes = (end * page_bytes).min(size_bytes);
    Extent { offset_bytes: offset, len_bytes: end_bytes - offset, is_mapped: first_is_mapped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_at_pages() {
        let cut: Vec<_> =
            pieces(4096, 3584, 5120).map(|piece| (piece.index, piece.start, piece.len)).collect();
        assert_eq!(cut, [(0, 3584, 512), (1, 0, 4096), (2, 0, 512)]);
        assert_eq!(pieces(4096, 512, 0).count(), 0);
    }
}
