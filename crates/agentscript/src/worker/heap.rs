//! The engine's heap: counted against a limit, and put back to a saved image after every run.
//!
//! Everything a realm is made of lies in one block of memory. Once it is built, that memory is copied; after a run the copy goes
//! back, bit for bit, and whatever else the run allocated is released as a whole. A realm is therefore as fresh as a new one, at
//! the price of a copy: nothing is torn down, built or frozen again.
//!
//! `classes` has the lengths of blocks, `allocator` lets the engine allocate here.
#![expect(unsafe_code, reason = "an allocator hands out raw memory; each block says why it holds")]

mod allocator;
mod classes;

use std::{cell::Cell, ptr, time::Instant};

pub(crate) use allocator::HeapAllocator;
use classes::{CLASSES, SMALL_MAX, class_of, len_of};

/// In front of every block: its length and its class. Keeps the alignment of `malloc`.
const HEADER: usize = 16;
/// Class of a block that comes from the system.
const LARGE: usize = usize::MAX;
/// Class of a long block of the realm itself: it stays where it is.
const LONE: usize = usize::MAX - 1;
/// Room for a realm and for what an ordinary run adds to it.
const BASE: usize = 768 * 1024;
/// Memory is asked for in steps of this many bytes after that.
const CHUNK: usize = 256 * 1024;
/// Allocations between two looks at the clock.
const POLL: u32 = 64;
/// A run that used more of the base than this has its pages given back.
const KEEP: usize = 256 * 1024;

/// The memory of one realm's engine, and its limits.
pub(crate) struct Heap {
    /// Bytes of blocks in use.
    used: Cell<usize>,
    /// Bytes taken from the system beside the base: more than `used` when freed blocks are of no use for what is asked.
    reserved: Cell<usize>,
    limit: Cell<usize>,
    #[cfg(test)]
    peak: Cell<usize>,
    exhausted: Cell<bool>,
    /// Time from which allocations fail.
    deadline: Cell<Option<Instant>>,
    /// Allocations until the clock is read again.
    until_poll: Cell<u32>,
    base: *mut u8,
    top: Cell<*mut u8>,
    end: Cell<*mut u8>,
    free: [Cell<*mut u8>; CLASSES],
    chunks: Cell<*mut Chunk>,
    large: Cell<*mut Large>,
    image: Cell<Option<Box<Image>>>,
    saved: Cell<bool>,
}

struct Chunk {
    next: *mut Chunk,
    _align: usize,
}

/// In front of the header of a block of the system's.
struct Large {
    previous: *mut Large,
    next: *mut Large,
}

/// A realm that has run nothing.
struct Image {
    bytes: Vec<u8>,
    free: [*mut u8; CLASSES],
    used: usize,
}

const LINKS: usize = size_of::<Large>();

impl Heap {
    /// An empty heap without a limit.
    pub(crate) fn new() -> Self {
        // SAFETY: a plain request for memory; a null answer makes every later allocation fail.
        let base = unsafe { libc::malloc(BASE) }.cast::<u8>();
        let room = if base.is_null() { 0 } else { BASE };
        Self {
            used: Cell::new(0),
            reserved: Cell::new(0),
            limit: Cell::new(usize::MAX),
            #[cfg(test)]
            peak: Cell::new(0),
            exhausted: Cell::new(false),
            deadline: Cell::new(None),
            until_poll: Cell::new(0),
            base,
            top: Cell::new(base),
            end: Cell::new(base.wrapping_add(room)),
            free: [const { Cell::new(ptr::null_mut()) }; CLASSES],
            chunks: Cell::new(ptr::null_mut()),
            large: Cell::new(ptr::null_mut()),
            image: Cell::new(None),
            saved: Cell::new(false),
        }
    }

    /// Allows `bytes` in all, what is in use included.
    pub(crate) fn set_limit(&self, bytes: usize) {
        self.limit.set(bytes);
    }

    /// Refuses every allocation after `deadline`: this ends work of the engine that its interrupt does not reach.
    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) {
        self.deadline.set(deadline);
        self.until_poll.set(0);
    }

    /// Bytes of blocks in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.get()
    }

    /// The most bytes that were in use at a time.
    #[cfg(test)]
    pub(crate) fn peak(&self) -> usize {
        self.peak.get()
    }

    /// Returns whether blocks were added that only [`Heap::restore`] gives back.
    pub(crate) fn has_grown(&self) -> bool {
        !self.chunks.get().is_null()
    }

    /// Returns true when an allocation was refused since the last [`Heap::restore`].
    pub(crate) fn exhausted(&self) -> bool {
        self.exhausted.get()
    }

    /// Remembers the heap as it is: what a realm looks like that has run nothing.
    pub(crate) fn save(&self) {
        let len = self.top.get().addr() - self.base.addr();
        // SAFETY: until now every block came from the base, and `len` bytes of it were handed out.
        let bytes = unsafe { std::slice::from_raw_parts(self.base, len) }.to_vec();
        let free = std::array::from_fn(|class| self.free[class].get());
        self.image.set(Some(Box::new(Image { bytes, free, used: self.used.get() })));
        self.saved.set(true);
    }

    /// Puts the heap back to what was saved.
    ///
    /// # Safety
    /// No value of the engine made since then may be used or dropped afterwards, and nothing that was saved may have been
    /// finalized in between.
    pub(crate) unsafe fn restore(&self) {
        let Some(image) = self.image.take() else { return };
        let len = image.bytes.len();
        let high = if self.chunks.get().is_null() { self.top.get().addr() - self.base.addr() } else { BASE };
        self.release();
        // SAFETY: the image is a copy of the first `len` bytes of the base.
        unsafe { ptr::copy_nonoverlapping(image.bytes.as_ptr(), self.base, len) };
        if high - len > KEEP {
            self.forget_pages(len);
        }
        for (slot, saved) in self.free.iter().zip(image.free) {
            slot.set(saved);
        }
        self.top.set(self.base.wrapping_add(len));
        self.end.set(self.base.wrapping_add(BASE));
        self.used.set(image.used);
        self.limit.set(usize::MAX);
        self.deadline.set(None);
        self.exhausted.set(false);
        self.image.set(Some(image));
    }

    /// Gives the pages of the base after the first `len` bytes back to the system.
    fn forget_pages(&self, len: usize) {
        const PAGE: usize = 4096;
        let start = (self.base.addr() + len).next_multiple_of(PAGE);
        let end = (self.base.addr() + BASE) / PAGE * PAGE;
        if start < end {
            // SAFETY: whole pages inside the base, of which nothing is in use.
            unsafe {
                libc::madvise(self.base.with_addr(start).cast(), end - start, libc::MADV_DONTNEED);
            }
        }
    }

    /// Releases everything beside the base.
    fn release(&self) {
        let mut chunk = self.chunks.replace(ptr::null_mut());
        let mut large = self.large.replace(ptr::null_mut());
        // SAFETY: both lists hold blocks of the system's that were not freed yet, each once.
        unsafe {
            while !chunk.is_null() {
                let next = (*chunk).next;
                libc::free(chunk.cast());
                chunk = next;
            }
            while !large.is_null() {
                let next = (*large).next;
                libc::free(large.cast());
                large = next;
            }
        }
        self.reserved.set(0);
    }

    fn grow(&self, bytes: usize) -> bool {
        let used = self.used.get().saturating_add(bytes);
        if used > self.limit.get() || self.is_late() {
            return self.refuse();
        }
        self.used.set(used);
        #[cfg(test)]
        self.peak.set(self.peak.get().max(used));
        true
    }

    fn is_late(&self) -> bool {
        let Some(deadline) = self.deadline.get() else { return false };
        let left = self.until_poll.get();
        if left > 0 {
            self.until_poll.set(left - 1);
            return false;
        }
        // Once late, every allocation asks again.
        let late = Instant::now() >= deadline;
        self.until_poll.set(if late { 0 } else { POLL });
        late
    }

    /// Takes `bytes` from the system. Blocks that were freed but fit nothing that is asked for may not pile up.
    fn reserve(&self, bytes: usize) -> bool {
        let (limit, reserved) = (self.limit.get(), self.reserved.get().saturating_add(bytes));
        if reserved > limit.saturating_add(limit / 2).saturating_add(CHUNK) {
            return self.refuse();
        }
        self.reserved.set(reserved);
        true
    }

    fn refuse(&self) -> bool {
        self.exhausted.set(true);
        false
    }

    fn shrink(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }

    /// A block from the base or, once that is full and saved, from a new chunk.
    fn bump(&self, len: usize) -> *mut u8 {
        if self.end.get().addr() - self.top.get().addr() < len && !self.add_chunk() {
            return ptr::null_mut();
        }
        let block = self.top.get();
        self.top.set(block.wrapping_add(len));
        block
    }

    fn add_chunk(&self) -> bool {
        if !self.saved.get() || !self.reserve(CHUNK) {
            return self.refuse();
        }
        // SAFETY: a plain request for memory, which becomes the head of the list when it is granted.
        unsafe {
            let chunk = libc::malloc(CHUNK).cast::<Chunk>();
            if chunk.is_null() {
                return self.refuse();
            }
            chunk.write(Chunk { next: self.chunks.get(), _align: 0 });
            self.chunks.set(chunk);
            let start = chunk.cast::<u8>();
            self.top.set(start.add(size_of::<Chunk>()));
            self.end.set(start.add(CHUNK));
        }
        true
    }

    /// A block for `total` bytes, header included; null when there is none.
    fn take(&self, total: usize, zeroed: bool) -> *mut u8 {
        if total > SMALL_MAX && self.saved.get() {
            return self.take_large(total, zeroed);
        }
        let (class, len) = if total > SMALL_MAX {
            (LONE, total.next_multiple_of(HEADER))
        } else {
            let class = class_of(total);
            (class, len_of(class))
        };
        if !self.grow(len) {
            return ptr::null_mut();
        }
        let freed = self.free.get(class).map_or(ptr::null_mut(), Cell::get);
        let block = if freed.is_null() { self.bump(len) } else { freed };
        if block.is_null() {
            self.shrink(len);
            return block;
        }
        // SAFETY: a block of `len` bytes that nobody else has; a freed one begins with the next of its list.
        unsafe {
            if !freed.is_null() {
                self.free[class].set(freed.cast::<*mut u8>().read());
            }
            head(block, len, class);
            let data = block.add(HEADER);
            if zeroed {
                data.write_bytes(0, total - HEADER);
            }
            data
        }
    }

    fn take_large(&self, total: usize, zeroed: bool) -> *mut u8 {
        let Some(whole) = total.checked_add(LINKS) else {
            self.refuse();
            return ptr::null_mut();
        };
        if !self.grow(total) {
            return ptr::null_mut();
        }
        if !self.reserve(total) {
            self.shrink(total);
            return ptr::null_mut();
        }
        // SAFETY: `whole` has room for the links, the header and the data; `malloc` aligns to 16 bytes.
        unsafe {
            let links = if zeroed { libc::calloc(1, whole) } else { libc::malloc(whole) }.cast::<Large>();
            if links.is_null() {
                self.give_back(total);
                self.refuse();
                return ptr::null_mut();
            }
            self.link(links);
            let block = links.cast::<u8>().add(LINKS);
            head(block, total, LARGE);
            block.add(HEADER)
        }
    }

    /// A block of the system's is smaller by `bytes`, or gone.
    fn give_back(&self, bytes: usize) {
        self.shrink(bytes);
        self.reserved.set(self.reserved.get().saturating_sub(bytes));
    }

    /// # Safety
    /// `links` is a block of the system's that is in no list.
    unsafe fn link(&self, links: *mut Large) {
        let next = self.large.replace(links);
        // SAFETY: as the caller says; `next` is the former head of the list.
        unsafe {
            links.write(Large { previous: ptr::null_mut(), next });
            if !next.is_null() {
                (*next).previous = links;
            }
        }
    }

    /// # Safety
    /// `links` is in the list.
    unsafe fn unlink(&self, links: *mut Large) {
        // SAFETY: as the caller says; its neighbours are in the list too.
        unsafe {
            let Large { previous, next } = links.read();
            if previous.is_null() {
                self.large.set(next);
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
        }
    }

    /// # Safety
    /// `data` came from [`Heap::take`] and was not freed since.
    unsafe fn drop_block(&self, data: *mut u8) {
        // SAFETY: as the caller says, so the header is in front of `data` and says where the block came from.
        unsafe {
            let block = data.sub(HEADER);
            let (len, class) = read_head(block);
            match class {
                LARGE => {
                    let links = block.sub(LINKS).cast::<Large>();
                    self.unlink(links);
                    self.give_back(len);
                    libc::free(links.cast());
                }
                LONE => self.shrink(len),
                _ => {
                    self.shrink(len);
                    if let Some(free) = self.free.get(class) {
                        block.cast::<*mut u8>().write(free.replace(block));
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`Heap::drop_block`].
    unsafe fn resize(&self, data: *mut u8, total: usize) -> *mut u8 {
        // SAFETY: as the caller says; the old block stays valid until its content was copied, and when null is returned.
        unsafe {
            let block = data.sub(HEADER);
            let (len, class) = read_head(block);
            if class == LARGE && total > SMALL_MAX {
                return self.resize_large(block, len, total);
            }
            if total <= len && class != LARGE {
                return data;
            }
            let new = self.take(total, false);
            if !new.is_null() {
                ptr::copy_nonoverlapping(data, new, len.min(total) - HEADER);
                self.drop_block(data);
            }
            new
        }
    }

    /// # Safety
    /// `block` is a block of the system's of `len` bytes.
    unsafe fn resize_large(&self, block: *mut u8, len: usize, total: usize) -> *mut u8 {
        let Some(whole) = total.checked_add(LINKS) else {
            self.refuse();
            return ptr::null_mut();
        };
        let more = total.saturating_sub(len);
        if !self.grow(more) {
            return ptr::null_mut();
        }
        if !self.reserve(more) {
            self.shrink(more);
            return ptr::null_mut();
        }
        // SAFETY: as the caller says; the block is out of the list while it may move.
        unsafe {
            let links = block.sub(LINKS).cast::<Large>();
            self.unlink(links);
            let moved = libc::realloc(links.cast(), whole).cast::<Large>();
            if moved.is_null() {
                self.link(links);
                self.give_back(more);
                self.refuse();
                return ptr::null_mut();
            }
            self.link(moved);
            self.give_back(len.saturating_sub(total));
            let block = moved.cast::<u8>().add(LINKS);
            head(block, total, LARGE);
            block.add(HEADER)
        }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        self.release();
        // SAFETY: the base came from `malloc`, or is null; the engine is gone, so nobody points into it.
        unsafe { libc::free(self.base.cast()) };
    }
}

/// # Safety
/// `block` has at least `HEADER` bytes and is aligned to them.
unsafe fn head(block: *mut u8, len: usize, class: usize) {
    // SAFETY: as the caller says.
    unsafe { block.cast::<[usize; 2]>().write([len, class]) };
}

/// # Safety
/// `block` begins with what [`head`] wrote.
unsafe fn read_head(block: *mut u8) -> (usize, usize) {
    // SAFETY: as the caller says.
    let [len, class] = unsafe { block.cast::<[usize; 2]>().read() };
    (len, class)
}

#[cfg(test)]
mod tests;
