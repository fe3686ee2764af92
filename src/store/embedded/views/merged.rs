//! Rows of two tables as one list.

use campanile_ports::StoreError;
use std::{cmp::Ordering, iter::Peekable};

type Read<T> = Result<T, StoreError>;

/// Two lists in the same order as one. What is in both comes once, as the first has it; an error comes before what is left.
pub struct Merged<A: Iterator, B: Iterator, F> {
    first: Peekable<A>,
    second: Peekable<B>,
    order: F,
}

impl<T, A, B, F> Merged<A, B, F>
where
    A: Iterator<Item = Read<T>>,
    B: Iterator<Item = Read<T>>,
    F: Fn(&T, &T) -> Ordering,
{
    pub fn new(first: A, second: B, order: F) -> Self {
        Self { first: first.peekable(), second: second.peekable(), order }
    }
}

impl<T, A, B, F> Iterator for Merged<A, B, F>
where
    A: Iterator<Item = Read<T>>,
    B: Iterator<Item = Read<T>>,
    F: Fn(&T, &T) -> Ordering,
{
    type Item = Read<T>;

    fn next(&mut self) -> Option<Read<T>> {
        let order = match (self.first.peek(), self.second.peek()) {
            (Some(Ok(first)), Some(Ok(second))) => (self.order)(first, second),
            (Some(Err(_)), _) | (Some(Ok(_)), None) => Ordering::Less,
            (_, Some(Err(_))) | (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Less => self.first.next(),
            Ordering::Greater => self.second.next(),
            Ordering::Equal => {
                self.second.next();
                self.first.next()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_in_both_comes_once_and_errors_are_not_lost() {
        let merged = |a: Vec<Read<(i32, char)>>, b: Vec<Read<(i32, char)>>| {
            let all = Merged::new(a.into_iter(), b.into_iter(), |x, y| x.0.cmp(&y.0));
            all.map(|row| row.map_or_else(|error| error.to_string(), |(n, from)| format!("{n}{from}")))
                .collect::<Vec<_>>()
        };
        let list = |from, all: &[i32]| all.iter().map(|n| Ok((*n, from))).collect::<Vec<_>>();
        assert_eq!(merged(list('a', &[1, 3, 5]), list('b', &[2, 3, 9])), ["1a", "2b", "3a", "5a", "9b"]);
        assert_eq!(merged(list('a', &[]), list('b', &[2])), ["2b"]);
        let broken = || vec![Ok((1, 'x')), Err(StoreError::Corrupt("broken".to_owned()))];
        let found = |all: Vec<String>| all.iter().position(|row| row.contains("broken"));
        assert_eq!(found(merged(broken(), list('b', &[0, 7]))), Some(2));
        assert_eq!(found(merged(list('a', &[0, 7]), broken())), Some(2));
    }
}
