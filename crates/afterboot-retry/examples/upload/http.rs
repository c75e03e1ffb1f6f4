//! As much HTTP/1.1 as the example needs: one request a connection.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub(crate) struct Request<'a> {
    method: &'static str,
    path: &'static str,
    offset: usize,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    pub(crate) fn head(path: &'static str) -> Request<'a> {
        Request { method: "HEAD", path, offset: 0, body: &[] }
    }

    pub(crate) fn put(path: &'static str, offset: usize, body: &'a [u8]) -> Request<'a> {
        Request { method: "PUT", path, offset, body }
    }
}

pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Sends one request and reads the head of the answer.
pub(crate) async fn ask(server: SocketAddr, request: &Request<'_>) -> io::Result<Response> {
    let Request { method, path, offset, body } = request;
    let mut stream = BufReader::new(TcpStream::connect(server).await?);
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\nUpload-Offset: {offset}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    let (first, headers) = head_of(&mut stream).await?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Response { status: status.ok_or_else(|| broken("status line"))?, headers })
}

/// A request as the server sees it.
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) offset: usize,
    pub(crate) body: Vec<u8>,
}

pub(crate) async fn receive(stream: &mut BufReader<TcpStream>) -> io::Result<Received> {
    const MOST_BYTES: usize = 1 << 20;
    let (first, headers) = head_of(stream).await?;
    let number = |name| find(&headers, name).and_then(|value| value.parse().ok()).ok_or_else(|| broken(name));
    let (offset, length) = (number("Upload-Offset")?, number("Content-Length")?);
    if length > MOST_BYTES {
        return Err(broken("Content-Length"));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Received { method: first.split(' ').next().unwrap_or_default().to_owned(), offset, body })
}

pub(crate) async fn answer(stream: &mut BufReader<TcpStream>, status: &str, header: &str) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\n{header}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.shutdown().await
}

/// The first line, and the headers after it.
async fn head_of(stream: &mut BufReader<TcpStream>) -> io::Result<(String, Vec<(String, String)>)> {
    const MOST_BYTES: u64 = 8 * 1024;
    let mut lines = stream.take(MOST_BYTES).lines();
    let first = lines.next_line().await?.ok_or_else(|| broken("request"))?;
    let mut headers = Vec::new();
    while let Some(line) = lines.next_line().await? {
        if line.is_empty() {
            return Ok((first, headers));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| broken("header"))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a bad {what}"))
}
