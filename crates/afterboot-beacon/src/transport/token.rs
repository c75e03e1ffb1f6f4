//! The secret that authenticates the application.

use std::fmt;

/// A secret for the `authorization` header. Its `Debug` hides it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Wraps the secret.
    pub fn new(secret: impl Into<String>) -> Token {
        Token(secret.into())
    }

    /// Returns whether it may stand in a header: visible ASCII and spaces.
    pub(crate) fn is_sendable(&self) -> bool {
        self.0.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
    }

    /// Returns the secret, for a transport.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}
