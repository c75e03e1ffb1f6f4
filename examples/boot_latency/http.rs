//! The little of HTTP/1.1 that the client needs: a request line out, the length of a response in.

use crate::Failure;

pub(crate) fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: boot-latency\r\n\r\n").into_bytes()
}

/// The length of the response at the head of `bytes`, or `None` while its head is not complete.
pub(crate) fn response_length(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    let Some(head) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&bytes[..head])?;
    let mut lines = text.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200") {
        return Err(format!("the service answered '{status}', not 200").into());
    }
    for line in lines {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            return Ok(Some(head + 4 + value.trim().parse::<usize>()?));
        }
    }
    Err("a response without content-length".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    #[test]
    fn a_response_is_as_long_as_its_head_and_its_content_length() {
        assert_eq!(response_length(RESPONSE).expect("valid"), Some(RESPONSE.len()));
    }

    #[test]
    fn half_a_head_has_no_length_yet() {
        for cut in 0..RESPONSE.len() - 5 {
            assert_eq!(response_length(&RESPONSE[..cut]).expect("incomplete"), None);
        }
    }

    #[test]
    fn another_status_is_an_error_that_says_so() {
        let error = response_length(b"HTTP/1.1 503 Busy\r\n\r\n").expect_err("not 200");
        assert!(error.to_string().contains("503 Busy"), "{error}");
    }
}
