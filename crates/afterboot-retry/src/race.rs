//! Two futures, whichever is first.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

pub(crate) enum Either<A, B> {
    First(A),
    Second(B),
}

/// If both are ready, the first wins. The second is dropped at the end; the first may be polled on.
pub(crate) async fn race<A: Future, B: Future>(
    mut first: Pin<&mut A>,
    second: B,
) -> Either<A::Output, B::Output> {
    let mut second = pin!(second);
    poll_fn(|cx| {
        if let Poll::Ready(value) = first.as_mut().poll(cx) {
            return Poll::Ready(Either::First(value));
        }
        second.as_mut().poll(cx).map(Either::Second)
    })
    .await
}
