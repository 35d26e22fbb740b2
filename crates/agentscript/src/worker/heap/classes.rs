//! Lengths of the blocks that are used again.

/// Blocks up to this length, header included, have a class and are used again; longer ones come from the system.
pub(super) const SMALL_MAX: usize = 32 * 1024;
/// Steps of 16 bytes up to 512, then four to each doubling.
pub(super) const CLASSES: usize = 56;
/// The class of blocks that hold `total` bytes.
pub(super) fn class_of(total: usize) -> usize {
    if total <= 512 {
        return total.div_ceil(16).max(1) - 1;
    }
    let last = total - 1;
    let doubling = last.ilog2() as usize;
    32 + (doubling - 9) * 4 + ((last >> (doubling - 2)) & 3)
}

/// The length of the blocks of a class.
pub(super) fn len_of(class: usize) -> usize {
    if class < 32 {
        return (class + 1) * 16;
    }
    let (doubling, quarter) = ((class - 32) / 4 + 9, (class - 32) % 4);
    (5 + quarter) << (doubling - 2)
}
