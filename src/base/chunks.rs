//! A vector that grows by pieces: nothing moves, so a million tasks cost no pause under the lock, and at most one
//! piece stands empty.

/// Elements a piece. A record takes 152 bytes with its place, so a piece of records takes 76 KB: two allocations
/// (records and entries) for 512 tasks.
const PIECE: usize = 512;

/// Pushed to at the end, read by index.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    pieces: Vec<Vec<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Chunks<T> {
        Chunks { pieces: Vec::new() }
    }
}

impl<T> Chunks<T> {
    pub(crate) fn len(&self) -> usize {
        match self.pieces.last() {
            Some(last) => (self.pieces.len() - 1) * PIECE + last.len(),
            None => 0,
        }
    }

    pub(crate) fn push(&mut self, value: T) {
        match self.pieces.last_mut().filter(|last| last.len() < PIECE) {
            Some(last) => last.push(value),
            None => {
                // A small boot keeps a small piece; a large one gets whole ones.
                let mut piece = Vec::with_capacity(if self.pieces.is_empty() { 4 } else { PIECE });
                piece.push(value);
                self.pieces.push(piece);
            }
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.pieces.get(index / PIECE)?.get(index % PIECE)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.pieces.get_mut(index / PIECE)?.get_mut(index % PIECE)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_found_at_its_index() {
        let mut chunks = Chunks::default();
        for n in 0..(3 * PIECE + 5) {
            assert_eq!(chunks.len(), n);
            chunks.push(n);
        }
        assert!(chunks.iter().copied().eq(0..3 * PIECE + 5));
        *chunks.get_mut(PIECE).unwrap() = 7;
        assert_eq!((chunks.get(PIECE - 1), chunks.get(PIECE)), (Some(&(PIECE - 1)), Some(&7)));
        assert_eq!(chunks.get(3 * PIECE + 5), None);
    }
}
