use std::rc::Rc;

use rquickjs::allocator::Allocator;

use super::*;

#[test]
fn a_class_holds_what_it_is_asked_for_and_wastes_at_most_a_quarter() {
    let mut last = 0;
    for total in HEADER..=SMALL_MAX {
        let class = class_of(total);
        let len = len_of(class);
        assert!(class < CLASSES && class >= last && len >= total, "{total}: class {class}, {len} bytes");
        assert!(len - total < 16.max(total / 4), "{total} takes {len}");
        assert_eq!(len % HEADER, 0);
        last = class;
    }
    assert_eq!(len_of(class_of(SMALL_MAX)), SMALL_MAX);
}

/// A block with known content.
struct Block(*mut u8, usize, u8);

impl Block {
    fn new(heap: &mut HeapAllocator, size: usize, mark: u8) -> Option<Self> {
        let data = heap.alloc(size);
        (!data.is_null()).then(|| {
            // SAFETY: `size` bytes were allocated.
            unsafe { data.write_bytes(mark, size) };
            Self(data, size, mark)
        })
    }

    fn is_whole(&self) -> bool {
        // SAFETY: the block is as long as was asked for and not freed.
        unsafe { std::slice::from_raw_parts(self.0, self.1) }.iter().all(|byte| *byte == self.2)
    }
}

proptest::proptest! {
    #[test]
    fn blocks_keep_their_content_whatever_else_is_allocated_resized_and_freed(
        steps in proptest::collection::vec((0_u8..4, 0_usize..100_000, 0_usize..64), 1..300), saved in 0_usize..300
    ) {
        let heap = Rc::new(Heap::new());
        let mut allocator = HeapAllocator::new(Rc::clone(&heap));
        let mut blocks: Vec<Block> = Vec::new();
        let mut kept = 0;
        for (step, (what, size, which)) in steps.into_iter().enumerate() {
            if step == saved {
                heap.save();
                kept = blocks.len();
            }
            // What was saved stays, as the realm does.
            let free = blocks.len() - kept;
            match what {
                0 | 1 => {
                    let size = if what == 0 { size % 600 } else { size };
                    blocks.extend(Block::new(&mut allocator, size, step as u8));
                }
                2 if free > 0 => {
                    let block = blocks.swap_remove(kept + which % free);
                    assert!(block.is_whole());
                    // SAFETY: it is out of the list and not used again.
                    unsafe { allocator.dealloc(block.0) };
                }
                3 if free > 0 => {
                    let block = &mut blocks[kept + which % free];
                    // SAFETY: the block is alive, and its new place is remembered.
                    let moved = unsafe { allocator.realloc(block.0, size) };
                    if !moved.is_null() {
                        let grown = Block(moved, block.1.min(size), block.2);
                        assert!(grown.is_whole());
                        // SAFETY: `size` bytes belong to the block.
                        unsafe { moved.write_bytes(block.2, size) };
                        *block = Block(moved, size, block.2);
                    }
                }
                _ => {}
            }
        }
        assert!(blocks.iter().all(Block::is_whole));
        if heap.saved.get() {
            // SAFETY: what came after the image is not used any more.
            unsafe { heap.restore() };
            blocks.truncate(kept);
            assert!(blocks.iter().all(Block::is_whole));
            let used: usize = blocks.iter().map(|block| unsafe { HeapAllocator::usable_size(block.0) } + HEADER).sum();
            assert_eq!(heap.used.get(), used);
        }
    }
}

#[test]
fn what_is_freed_cannot_be_hoarded_in_classes_nobody_asks_for() {
    let heap = Rc::new(Heap::new());
    let mut allocator = HeapAllocator::new(Rc::clone(&heap));
    heap.save();
    heap.set_limit(4 * 1024 * 1024);
    let mut size = 16;
    while !heap.exhausted() {
        assert!(size < SMALL_MAX, "every class was filled and {} bytes are reserved", heap.reserved.get());
        let blocks: Vec<_> = (0..3 * 1024 * 1024 / size)
            .map(|_| allocator.alloc(size))
            .filter(|block| !block.is_null())
            .collect();
        for block in blocks {
            // SAFETY: each was just allocated.
            unsafe { allocator.dealloc(block) };
        }
        size *= 2;
    }
    assert!(heap.reserved.get() <= 7 * 1024 * 1024);
}
