//! The secret that an endpoint asks for.

use std::fmt;

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
