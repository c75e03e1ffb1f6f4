//! The secret that an endpoint asks for.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// A secret that goes nowhere but into the `authorization` header: its `Debug` hides it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes the secret.
    pub fn new(secret: impl Into<String>) -> Token {
        Token(secret.into())
    }

    /// May it stand in a header? Visible ASCII and spaces may.
    pub(crate) fn is_sendable(&self) -> bool {
        self.0.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
    }

    /// The secret itself, for a transport.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

type Asking = Pin<Box<dyn Future<Output = Option<Token>> + Send>>;
type Ask = dyn Fn() -> Asking + Send + Sync;

/// Where tokens come from. One is kept until the endpoint refuses it.
#[derive(Clone)]
pub(crate) struct Tokens {
    ask: Arc<Ask>,
    known: Arc<Mutex<Option<Token>>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(hidden)")
    }
}

impl Tokens {
    pub(crate) fn none() -> Tokens {
        Tokens::asking(|| async { None })
    }

    pub(crate) fn fixed(token: Token) -> Tokens {
        Tokens::asking(move || {
            let token = token.clone();
            async move { Some(token) }
        })
    }

    pub(crate) fn asking<F, Fut>(ask: F) -> Tokens
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Token>> + Send + 'static,
    {
        Tokens { ask: Arc::new(move || Box::pin(ask())), known: Arc::default() }
    }

    /// The kept token, or a new one.
    pub(crate) async fn get(&self) -> Option<Token> {
        let known = self.lock().clone();
        if known.is_some() {
            return known;
        }
        let token = (self.ask)().await;
        self.lock().clone_from(&token);
        token
    }

    /// The endpoint refused it, or may have: the next request asks anew.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Token>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
