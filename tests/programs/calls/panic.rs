// Panics that unwind over frames with destructors, caught above, one in recursion, and one in a thread.
use std::hint::black_box;
use std::panic;

struct Counted<'a>(&'a mut u32);

impl Drop for Counted<'_> {
    #[inline(never)]
    fn drop(&mut self) {
        *self.0 += 1;
    }
}

#[inline(never)]
fn fails(n: u32) -> u32 {
    if n % 2 == 0 {
        panic!("even");
    }
    n
}

#[inline(never)]
fn recursive(depth: u32, n: u32) -> u32 {
    let mut dropped = 0;
    let counted = Counted(&mut dropped);
    let below = if depth == 0 { fails(n) } else { recursive(black_box(depth - 1), n) + 1 };
    black_box(&counted);
    below
}

#[inline(never)]
fn caught(n: u32) -> u32 {
    panic::catch_unwind(|| recursive(4, n)).unwrap_or(100)
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let sum: u32 = (0..4).map(caught).sum();
    let joined = std::thread::spawn(|| recursive(2, 2)).join().is_err();
    println!("{sum} {joined}");
}
