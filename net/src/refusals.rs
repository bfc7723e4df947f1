//! JSON bodies for the answers that the HTTP library sends to unreadable requests.
//!
//! The library cannot add a body, so this module replaces such answers on their way to the client. Each of these
//! answers is the last on its connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::Status;
use tonic::codegen::Bytes;
use tonic::transport::server::Connected;

use crate::protocol::{Protocol, http_refusal};

/// Header at the end of the library's own answers. It declares an empty body.
const EMPTY: &str = "content-length: 0\r\n";

pin_project! {
    /// A connection on which every refusal has a body.
    pub(crate) struct Refusals<S> {
        #[pin]
        stream: S,
        protocol: Protocol,
        // The unwritten part of a replaced answer.
        left: Bytes,
    }
}

impl<S> Refusals<S> {
    /// Wraps a connection. Answers are replaced only on HTTP connections, not on gRPC connections.
    pub(crate) fn new(stream: S, protocol: Protocol) -> Self {
        Self { stream, protocol, left: Bytes::new() }
    }
}

impl<S: AsyncWrite> Refusals<S> {
    fn poll_left(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        while !this.left.is_empty() {
            let written = ready!(this.stream.as_mut().poll_write(cx, this.left))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *this.left = this.left.split_off(written);
        }
        Poll::Ready(Ok(()))
    }
}

/// Returns the answer with a body, if the library made it.
fn with_body(answer: &[u8]) -> Option<Bytes> {
    let text = std::str::from_utf8(answer).ok().filter(|text| text.ends_with("\r\n\r\n"))?;
    let why = match text.strip_prefix("HTTP/1.1 ")?.split(' ').next()? {
        "400" => "expected an HTTP/1.1 request, found something else",
        "414" => "the URL is too long; request less at a time",
        "431" => "the headers are too long or too many; send fewer",
        _ => return None,
    };
    let (before, after) = text.split_once(EMPTY)?;
    let refusal = http_refusal(&Status::invalid_argument(why));
    let body = refusal.body();
    let mut full = before.to_owned();
    for (name, value) in refusal.headers() {
        full.extend([name.as_str(), ": ", value.to_str().ok()?, "\r\n"]);
    }
    full.push_str(&format!("content-length: {}\r\n{after}{body}", body.len()));
    Some(full.into())
}

impl<S: Connected> Connected for Refusals<S> {
    type ConnectInfo = S::ConnectInfo;

    fn connect_info(&self) -> S::ConnectInfo {
        self.stream.connect_info()
    }
}

impl<S: AsyncRead> AsyncRead for Refusals<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_read(cx, buf)
    }
}

impl<S: AsyncWrite> AsyncWrite for Refusals<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.as_mut().poll_left(cx))?;
        let this = self.project();
        match with_body(bytes) {
            Some(full) if *this.protocol == Protocol::Http => {
                *this.left = full;
                Poll::Ready(Ok(bytes.len()))
            }
            _ => this.stream.poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_left(cx))?;
        self.project().stream.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_left(cx))?;
        self.project().stream.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.protocol {
            Protocol::Grpc => self.project().stream.poll_write_vectored(cx, bytes),
            // An answer must arrive in one piece to be recognised.
            Protocol::Http => {
                let first = bytes.iter().find(|bytes| !bytes.is_empty());
                self.poll_write(cx, first.map_or(&[][..], |bytes| bytes))
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.protocol == Protocol::Grpc && self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers that must pass unchanged; `tests/ports.rs` covers the library's own answers.
    #[test]
    fn other_answers_stay_unchanged() {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n{}",
            "",
        ] {
            assert_eq!(with_body(answer.as_bytes()), None, "{answer}");
        }
    }
}
