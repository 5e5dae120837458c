// Panics that unwind: caught three frames up with destructors on the way, caught in recursion at two depths,
// and thrown again.
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static DROPPED: AtomicU64 = AtomicU64::new(0);
static CAUGHT: AtomicU64 = AtomicU64::new(0);

struct Counted;
impl Drop for Counted {
    #[inline(never)]
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Relaxed);
    }
}

#[inline(never)]
fn thrower(depth: u64) -> u64 {
    if depth % 2 == 0 {
        resume_unwind(Box::new(depth));
    }
    depth
}

#[inline(never)]
fn third(depth: u64) -> u64 {
    let _counted = Counted;
    thrower(depth) + 1
}

#[inline(never)]
fn second(depth: u64) -> u64 {
    let _counted = Counted;
    third(depth) + 1
}

#[inline(never)]
fn caught(depth: u64) -> u64 {
    catch_unwind(|| second(depth)).unwrap_or_else(|_| CAUGHT.fetch_add(1, Relaxed))
}

#[inline(never)]
fn again(depth: u64) -> u64 {
    let result = catch_unwind(|| {
        catch_unwind(|| second(depth)).unwrap_or_else(|problem| {
            CAUGHT.fetch_add(1, Relaxed);
            resume_unwind(problem)
        })
    });
    result.unwrap_or_else(|_| CAUGHT.fetch_add(1, Relaxed))
}

#[inline(never)]
fn recursive(depth: u64, until: u64, from: u64) -> u64 {
    let _counted = Counted;
    if depth == from {
        return thrower(from);
    }
    if depth != until {
        return recursive(depth + 1, until, from) + 1;
    }
    let result = catch_unwind(|| recursive(depth + 1, until, from));
    result.unwrap_or_else(|_| CAUGHT.fetch_add(1, Relaxed))
}

fn main() {
    let mut sum = 0;
    for round in 0..4 {
        sum += caught(round) + again(round) + recursive(0, 2, 8) + recursive(0, 5, 6);
    }
    println!(
        "caught {} dropped {} sum {}",
        CAUGHT.load(Relaxed),
        DROPPED.load(Relaxed),
        sum
    );
}
