use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use tower_service::Service;

use crate::base::within::within;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A connector that gives up: the limit covers the look-up of the name, TCP and TLS, of which hyper-util's own covers
/// TCP alone.
#[derive(Clone)]
pub(super) struct Bounded<C> {
    inner: C,
    limit: Duration,
}

impl<C> Bounded<C> {
    pub(super) fn new(inner: C, limit: Duration) -> Bounded<C> {
        Bounded { inner, limit }
    }
}

impl<C> Service<Uri> for Bounded<C>
where
    C: Service<Uri, Error: Into<BoxError>, Future: Send + 'static>,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, endpoint: Uri) -> Self::Future {
        let connecting = self.inner.call(endpoint);
        let limit = self.limit;
        Box::pin(async move {
            match within(limit, connecting).await {
                Some(connected) => connected.map_err(Into::into),
                None => {
                    let why = format!("no connection within {limit:?}");
                    Err(io::Error::new(io::ErrorKind::TimedOut, why).into())
                }
            }
        })
    }
}
