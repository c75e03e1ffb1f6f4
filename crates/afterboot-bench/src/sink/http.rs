//! Reads requests: `content-length` and chunked bodies, one after the other on a connection.

use std::io::{self, BufRead, Read, Write};

// What a server in earnest would bound as well.
const MAX_HEAD: u64 = 64 * 1024;
const MAX_BODY: u64 = 64 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Request {
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The request line and the headers, as they came.
    pub(crate) head_bytes: u64,
    /// As it came: with the framing of its chunks.
    pub(crate) body_bytes: u64,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }
}

/// The next request, or none where the client has closed between two.
pub(crate) fn read(reader: &mut impl BufRead, writer: &mut impl Write) -> io::Result<Option<Request>> {
    let mut request = Request::default();
    let first = line(reader, &mut request.head_bytes)?;
    if first.is_empty() {
        return Ok(None);
    }
    loop {
        let text = line(reader, &mut request.head_bytes)?;
        if text.is_empty() {
            break;
        }
        let (name, value) = text.split_once(':').ok_or_else(|| invalid("a header has no colon"))?;
        request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if request.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        chunks(reader, &mut request)?;
    } else if let Some(length) = request.header("content-length") {
        let length = length.parse().map_err(|_| invalid("content-length is no number"))?;
        take(reader, length, &mut request.body)?;
        request.body_bytes = length;
    }
    Ok(Some(request))
}

fn chunks(reader: &mut impl BufRead, request: &mut Request) -> io::Result<()> {
    loop {
        let size = line(reader, &mut request.body_bytes)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| invalid("a chunk's size is no number"))?;
        if size == 0 {
            // Trailers, to the empty line.
            while !line(reader, &mut request.body_bytes)?.is_empty() {}
            return Ok(());
        }
        take(reader, size, &mut request.body)?;
        request.body_bytes += size;
        line(reader, &mut request.body_bytes)?;
    }
}

fn take(reader: &mut impl BufRead, bytes: u64, body: &mut Vec<u8>) -> io::Result<()> {
    if body.len() as u64 + bytes > MAX_BODY {
        return Err(invalid("the body is too large"));
    }
    let got = reader.take(bytes).read_to_end(body)?;
    if got as u64 == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Without its end. Empty also at the end of the stream.
fn line(reader: &mut impl BufRead, bytes: &mut u64) -> io::Result<String> {
    let mut text = String::new();
    let got = reader.take(MAX_HEAD).read_line(&mut text)?;
    *bytes += got as u64;
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
