use std::fmt;
use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

/// Compresses a body, at level 1: `WIRE.md` compares the levels.
pub fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4 + 64), Compression::fast());
    // Writing to a Vec does not fail.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default()
}

/// Why a compressed body could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum InflateError {
    /// Not gzip, or cut short.
    Corrupt(io::Error),
    /// It inflates to more than this many bytes.
    TooLarge(usize),
}

impl fmt::Display for InflateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InflateError::Corrupt(error) => write!(f, "the body is no gzip: {error}"),
            InflateError::TooLarge(max) => write!(f, "the body inflates to more than {max} bytes"),
        }
    }
}

impl std::error::Error for InflateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            InflateError::Corrupt(error) => Some(error),
            InflateError::TooLarge(_) => None,
        }
    }
}

/// Inflates a body of one or several members to at most `max` bytes, and never produces more than one byte beyond.
///
/// # Errors
/// Fails if it is not gzip, is cut short, or inflates to more than `max` bytes.
pub fn gunzip(body: &[u8], max: usize) -> Result<Vec<u8>, InflateError> {
    let mut out = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(body).take(limit).read_to_end(&mut out).map_err(InflateError::Corrupt)?;
    if out.len() > max { Err(InflateError::TooLarge(max)) } else { Ok(out) }
}
