//! Pages of lists. Callers go on with a token, or jump to a page number not too far from the start.

use super::{Answer, invalid};
use campanile_schema::{
    limits::{PAGE_DEPTH, PAGE_SIZE_MAX},
    view::Page,
};
use std::future::Future;

/// Items of a page when the call names no size.
pub(super) const PAGE_SIZE: usize = 50;

/// What was asked for, checked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageRequest {
    pub token: Option<String>,
    /// Items before the page.
    skip: usize,
    pub size: usize,
}

/// `page` counts from 1 and excludes `token`.
pub(super) fn wanted(token: Option<String>, page: Option<usize>, size: Option<usize>) -> Answer<PageRequest> {
    let size = page_size(size, PAGE_SIZE)?;
    let token = token.filter(|token| !token.is_empty());
    match (page, &token) {
        (None, _) => {
            return Ok(PageRequest { token, skip: 0, size });
        }
        (Some(0), _) => return Err(invalid("page: counts from 1")),
        (Some(_), Some(_)) => return Err(invalid("page: give either page or pageToken")),
        (Some(_), None) => {}
    }
    let page = page.unwrap_or(1);
    if page.saturating_mul(size) > PAGE_DEPTH {
        return Err(invalid(format!(
            "page: page * pageSize is at most {PAGE_DEPTH}; go on with the nextPageToken of the page before"
        )));
    }
    Ok(PageRequest { token, skip: (page - 1) * size, size })
}

pub(super) fn page_size(size: Option<usize>, default: usize) -> Answer<usize> {
    match size {
        None => Ok(default),
        Some(size @ 1..=PAGE_SIZE_MAX) => Ok(size),
        Some(_) => Err(invalid(format!("pageSize: is 1 to {PAGE_SIZE_MAX}"))),
    }
}

/// Reads the page with `fetch(token, size)`. The items before a numbered page are read in the largest pages, so the
/// work is bounded by `PAGE_DEPTH`.
pub(super) async fn read<T, F, Fut>(wanted: PageRequest, fetch: F) -> Answer<Page<T>>
where
    F: Fn(Option<String>, usize) -> Fut,
    Fut: Future<Output = Answer<Page<T>>>,
{
    let PageRequest { mut token, mut skip, size } = wanted;
    while skip > 0 {
        let passed = fetch(token, skip.min(PAGE_SIZE_MAX)).await?;
        // A store may give less than asked for and still have more, but never nothing with a token for ever.
        skip = skip.saturating_sub(passed.items.len().max(1));
        token = passed.next_page_token;
        if token.is_none() {
            return Ok(Page { items: Vec::new(), next_page_token: None });
        }
    }
    fetch(token, size).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// `0..count`, tokens are the next number.
    async fn numbers(token: Option<String>, size: usize, count: usize) -> Answer<Page<usize>> {
        assert!(size <= PAGE_SIZE_MAX);
        let from = token.map_or(0, |token| token.parse().unwrap());
        let to = count.min(from + size);
        Ok(Page { items: (from..to).collect(), next_page_token: (to < count).then(|| to.to_string()) })
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn numbered_pages_are_the_pages_one_gets_by_tokens() {
        for count in [0, 1, 9, 10, 11, 2500] {
            let mut token = None;
            for page in 1..=count / 10 + 2 {
                let wanted = wanted(None, Some(page), Some(10)).unwrap();
                let numbered = run(read(wanted, |token, size| numbers(token, size, count))).unwrap();
                let expected: Vec<usize> = ((page - 1) * 10..count.min(page * 10)).collect();
                assert_eq!(numbered.items, expected, "page {page} of {count}");
                if page == 1 || token.is_some() {
                    let walked = run(numbers(token.take(), 10, count)).unwrap();
                    assert_eq!(numbered, walked);
                    token = walked.next_page_token;
                }
            }
        }
    }

    #[test]
    fn sizes_and_numbers_outside_the_rules_are_refused() {
        let refused =
            |token: Option<&str>, page, size| wanted(token.map(str::to_owned), page, size).unwrap_err().message;
        assert!(refused(None, Some(0), None).starts_with("page: counts from 1"));
        assert!(refused(Some("t"), Some(1), None).starts_with("page: give either"));
        assert!(refused(None, Some(11), Some(1000)).starts_with("page: page * pageSize is at most 10000"));
        assert!(refused(None, Some(usize::MAX), Some(2)).starts_with("page: page * pageSize"));
        assert!(refused(None, None, Some(0)).starts_with("pageSize: is 1 to 1000"));
        assert!(refused(None, None, Some(1001)).starts_with("pageSize: is 1 to 1000"));
        assert_eq!(wanted(None, Some(10), Some(1000)).unwrap(), PageRequest { token: None, skip: 9000, size: 1000 });
        assert_eq!(wanted(Some(String::new()), None, None).unwrap().token, None);
    }
}
