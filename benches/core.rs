//! What the pure core costs: the queues, the gate, the scheduler's decisions.
//!
//! ```sh
//! RUSTFLAGS='--cfg afterboot_internals' cargo bench --bench core --target-dir target/internals
//! ```
//!
//! Each iteration asserts its result. Compare the sizes: the cost a task should stay flat. Without the flag, which opens the
//! core to this file, nothing is measured.

#[cfg(not(afterboot_internals))]
#[expect(clippy::print_stderr, reason = "says how to run it")]
fn main() {
    eprintln!("core: not measured; set RUSTFLAGS='--cfg afterboot_internals'");
}

#[cfg(afterboot_internals)]
fn main() {
    divan::main();
}

#[cfg(afterboot_internals)]
mod benches {
    use afterboot::internals;
    use divan::Bencher;
    use divan::counter::ItemsCount;

    const SIZES: [u32; 3] = [1_000, 30_000, 1_000_000];

    #[divan::bench(args = SIZES, sample_count = 10)]
    fn queue_in_order(bencher: Bencher<'_, '_>, tasks: u32) {
        bencher.counter(ItemsCount::new(tasks)).bench(|| assert_eq!(internals::queue_in_order(tasks), tasks));
    }

    #[divan::bench(args = SIZES, sample_count = 10)]
    fn queue_out_of_order(bencher: Bencher<'_, '_>, tasks: u32) {
        bencher
            .counter(ItemsCount::new(tasks))
            .bench(|| assert_eq!(internals::queue_out_of_order(tasks), tasks));
    }

    #[divan::bench(args = [1_000, 1_000_000], sample_count = 10)]
    fn gate_look(bencher: Bencher<'_, '_>, looks: u64) {
        bencher.counter(ItemsCount::new(looks)).bench(|| assert_eq!(internals::gate_looks(looks), 0));
    }

    #[divan::bench(args = SIZES, sample_count = 10)]
    fn decide(bencher: Bencher<'_, '_>, tasks: u32) {
        bencher.counter(ItemsCount::new(tasks)).bench(|| assert_eq!(internals::decisions(tasks), tasks));
    }
}
