// Runs that part at one line, for a reason of Rust each: argument 1 says which, and INPUT decides.
use std::hint::black_box;

#[inline(never)]
fn none(number: usize) -> usize {
    let found: Option<usize> = black_box(number).checked_sub(3);
    match black_box(found) { // PARTS none
        Some(rest) => black_box(rest) + 1,
        None => black_box(7),
    }
}

#[inline(never)]
fn bounds(number: usize, values: &[usize]) -> usize {
    black_box(values.len());
    values[number] // PARTS bounds
}

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let number = std::env::var("INPUT").unwrap().parse::<usize>().unwrap();
    let values = [1, 2, 3, 4];
    let found = match kind.as_str() {
        "none" => none(number),
        _ => bounds(number, black_box(&values)),
    };
    black_box(found);
}
