//! A `tower` layer that counts requests in flight. Feature `tower`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::api::governor::Governor;

use crate::api::guard::InFlightGuard;

/// A `tower` layer that counts each request as in flight from the call until its response is ready. A body that is
/// streamed afterwards is not counted. Returned by [`Governor::in_flight_layer`].
#[derive(Clone)]
#[must_use = "a layer counts nothing until it wraps a service"]
pub struct InFlightLayer<N> {
    governor: Governor,
    name: Arc<N>,
}

/// The service that [`InFlightLayer`] wraps around another one.
#[derive(Clone)]
#[must_use = "a service does nothing until it is called"]
pub struct CountInFlight<S, N> {
    inner: S,
    governor: Governor,
    name: Arc<N>,
}

impl Governor {
    /// Returns a `tower` layer that counts each request as in flight, under the name that `name` returns for it.
    /// Feature `tower`.
    ///
    /// Return the route, not the path: each name is kept for as long as one of its requests is in flight, and may be
    /// shown in the report.
    pub fn in_flight_layer<N>(&self, name: N) -> InFlightLayer<N> {
        InFlightLayer { governor: self.clone(), name: Arc::new(name) }
    }
}

impl<S, N> Layer<S> for InFlightLayer<N> {
    type Service = CountInFlight<S, N>;

    fn layer(&self, inner: S) -> CountInFlight<S, N> {
        CountInFlight { inner, governor: self.governor.clone(), name: Arc::clone(&self.name) }
    }
}

impl<S, N, R, C> Service<R> for CountInFlight<S, N>
where
    S: Service<R>,
    N: Fn(&R) -> C,
    C: AsRef<str>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Counted<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Counted<S::Future> {
        let guard = self.governor.in_flight((self.name)(&request).as_ref().to_owned());
        Counted { future: self.inner.call(request), guard: Some(guard) }
    }
}

/// The response future of [`CountInFlight`]: counts its request until it is ready or dropped.
#[pin_project]
#[must_use = "a future does nothing until it is polled"]
pub struct Counted<F> {
    #[pin]
    future: F,
    /// None once the response is ready.
    guard: Option<InFlightGuard>,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let polled = this.future.poll(cx);
        if polled.is_ready() {
            // Whoever holds the future on, as a body streams, holds no request.
            *this.guard = None;
        }
        polled
    }
}

impl<N> fmt::Debug for InFlightLayer<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightLayer").finish_non_exhaustive()
    }
}

impl<S, N> fmt::Debug for CountInFlight<S, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountInFlight").finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for Counted<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("guard", &self.guard).finish_non_exhaustive()
    }
}
