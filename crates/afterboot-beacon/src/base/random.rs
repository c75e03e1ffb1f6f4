//! Random bytes, different in each thread and each process.

use std::cell::RefCell;
use std::process;

use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng, TryRng};

use super::wall::system_ms;

struct Randomness {
    /// A forked child has its parent's generator: it must not give its parent's names.
    process: u32,
    rng: StdRng,
}

impl Randomness {
    fn new(process: u32) -> Randomness {
        let mut seed = [0; 32];
        // A system without randomness: the addresses and the time are all there is.
        if SysRng.try_fill_bytes(&mut seed).is_err() {
            let here = &raw const seed as usize as u64;
            seed[..8].copy_from_slice(&here.to_le_bytes());
            seed[8..16].copy_from_slice(&system_ms().to_le_bytes());
            seed[16..20].copy_from_slice(&process.to_le_bytes());
        }
        Randomness { process, rng: StdRng::from_seed(seed) }
    }

    fn draw<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.rng.fill_bytes(&mut bytes);
        bytes
    }
}

thread_local! {
    static RANDOMNESS: RefCell<Option<Randomness>> = const { RefCell::new(None) };
}

/// Random bytes, of which no two threads and no two processes get the same.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    random_in(process::id())
}

pub(crate) fn random_in<const N: usize>(process: u32) -> [u8; N] {
    let drawn = RANDOMNESS.try_with(|randomness| {
        let mut randomness = randomness.borrow_mut();
        if randomness.as_ref().is_none_or(|known| known.process != process) {
            *randomness = Some(Randomness::new(process));
        }
        randomness.as_mut().map(Randomness::draw)
    });
    // A thread on its way out may still post, and has no generator any more.
    drawn.ok().flatten().unwrap_or_else(|| Randomness::new(process).draw())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    struct Draws(Sender<[u8; 16]>);

    impl Drop for Draws {
        fn drop(&mut self) {
            let _ = self.0.send(super::random());
        }
    }

    thread_local! {
        static LAST: RefCell<Option<Draws>> = const { RefCell::new(None) };
    }

    /// B6: a post from the destructor of a thread's own data is a post, and does not end the process.
    #[test]
    fn a_thread_on_its_way_out_has_names_to_give() {
        let (drawn, names) = channel();
        thread::spawn(move || {
            LAST.set(Some(Draws(drawn)));
            super::random::<16>()
        })
        .join()
        .unwrap();
        assert_ne!(names.recv().unwrap(), [0; 16]);
    }
}
