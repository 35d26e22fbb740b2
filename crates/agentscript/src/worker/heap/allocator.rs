//! The engine's allocations from a heap.

use std::{ptr, rc::Rc};

use rquickjs::allocator::Allocator;

use super::{HEADER, Heap, read_head};

/// Lets the engine allocate from a [`Heap`].
///
/// The engine's own limit tells nobody that it was reached, and a script could catch the exception it throws.
pub(crate) struct HeapAllocator {
    heap: Rc<Heap>,
}

impl HeapAllocator {
    pub(crate) fn new(heap: Rc<Heap>) -> Self {
        Self { heap }
    }

    fn total(&self, size: usize) -> Option<usize> {
        let total = size.checked_add(HEADER);
        if total.is_none() {
            self.heap.refuse();
        }
        total
    }
}

// SAFETY: blocks are aligned to 16 bytes, at least as long as asked for, and belong to one owner until they are freed; the header
// holds the length that `usable_size` reports; null is returned when there is no memory.
unsafe impl Allocator for HeapAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.total(size).map_or(ptr::null_mut(), |total| self.heap.take(total, false))
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let total = count.checked_mul(size).and_then(|size| self.total(size));
        total.map_or(ptr::null_mut(), |total| self.heap.take(total, true))
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        // SAFETY: the engine frees what it was given, once.
        unsafe { self.heap.drop_block(ptr) };
    }

    unsafe fn realloc(&mut self, ptr: *mut u8, new_size: usize) -> *mut u8 {
        if ptr.is_null() {
            return self.alloc(new_size);
        }
        // SAFETY: as in `dealloc`.
        self.total(new_size).map_or(ptr::null_mut(), |total| unsafe { self.heap.resize(ptr, total) })
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        if ptr.is_null() {
            return 0;
        }
        // SAFETY: `ptr` came from `take`.
        unsafe { read_head(ptr.sub(HEADER)).0 - HEADER }
    }
}
