//! Where tokens come from.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use crate::base::lock::lock;
use crate::transport::Token;

type Asking = Pin<Box<dyn Future<Output = Option<Token>> + Send>>;
type Ask = dyn Fn() -> Asking + Send + Sync;

/// Where tokens come from. One is kept until the endpoint refuses it.
#[derive(Clone)]
pub(crate) struct TokenSource {
    ask: Arc<Ask>,
    known: Arc<Mutex<Option<Token>>>,
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource(hidden)")
    }
}

impl TokenSource {
    pub(crate) fn none() -> TokenSource {
        TokenSource::asking(|| async { None })
    }

    pub(crate) fn fixed(token: Token) -> TokenSource {
        TokenSource::asking(move || {
            let token = token.clone();
            async move { Some(token) }
        })
    }

    pub(crate) fn asking<F, Fut>(ask: F) -> TokenSource
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Token>> + Send + 'static,
    {
        TokenSource { ask: Arc::new(move || Box::pin(ask())), known: Arc::default() }
    }

    /// The kept token, or a new one.
    pub(crate) async fn get(&self) -> Option<Token> {
        let known = lock(&self.known).clone();
        if known.is_some() {
            return known;
        }
        let token = (self.ask)().await;
        lock(&self.known).clone_from(&token);
        token
    }

    /// The endpoint refused it, or may have: the next request asks anew.
    pub(crate) fn forget(&self) {
        *lock(&self.known) = None;
    }
}
