//! Bearer tokens: a secret that server and clients share.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap, HeaderValue};
use subtle::ConstantTimeEq;
use tonic::Status;

use crate::log_limiter::LogLimiter;

/// Minimum length of a token. 16 characters of base 64 are 96 bits, which cannot be guessed over a network.
const MIN_LENGTH: usize = 16;

/// Maximum length of a token.
const MAX_LENGTH: usize = 4096;

const SCHEME: &str = "Bearer";

/// Unreadable or invalid token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token from {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The token is too short, too long, or has characters that a header cannot contain. The error does not repeat
    /// the token.
    #[error(
        "the token from {origin} is invalid: expected one line of {MIN_LENGTH} to {MAX_LENGTH} printable characters \
         without blanks, found {found}; make one with: openssl rand -base64 32"
    )]
    Unusable {
        /// Origin of the token.
        origin: String,
        /// The part that is invalid.
        found: String,
    },
}

/// A secret. It is never printed or logged.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Reads a token from a file, without surrounding blanks and line feeds.
    ///
    /// # Errors
    ///
    /// [`TokenError::Read`] or [`TokenError::Unusable`].
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Read { path: path.to_path_buf(), source };
        let bytes = exact2048_files::read_at_most(path, 2 * MAX_LENGTH as u64).map_err(failed)?;
        let origin = path.display().to_string();
        match exact2048_text::utf8(&bytes) {
            Ok(text) => Self::new(text, &origin),
            Err(found) => Err(TokenError::Unusable { origin, found }),
        }
    }

    /// Checks a token given as text. `origin` names the token's source in errors.
    ///
    /// # Errors
    ///
    /// [`TokenError::Unusable`].
    pub fn new(text: &str, origin: &str) -> Result<Self, TokenError> {
        let unusable = |found| Err(TokenError::Unusable { origin: origin.to_owned(), found });
        let text = text.trim();
        if !(MIN_LENGTH..=MAX_LENGTH).contains(&text.len()) {
            return unusable(format!("{} characters", text.len()));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return unusable("other characters".to_owned());
        }
        Ok(Self(text.into()))
    }

    /// Returns the text of the token, for a file that only its owner may read.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Returns the header with which a client shows the token, as [`CheckToken`] expects it.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::try_from(format!("{SCHEME} {}", self.0)).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Compares two tokens. The time depends only on the lengths, so it does not reveal a matching prefix.
    fn is(&self, other: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(other).into()
    }
}

/// Token that a server requires.
#[derive(Clone, Debug, Default)]
pub enum RequiredToken {
    /// Any client may call.
    #[default]
    None,
    /// Clients must show this token.
    Given(Token),
    /// The token is not known yet. Until then, no client may call.
    Later,
}

impl RequiredToken {
    /// Returns whether clients must show a token.
    #[must_use]
    pub fn is_required(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Returns the token, if it is known.
    #[must_use]
    pub fn given(&self) -> Option<&Token> {
        match self {
            Self::Given(token) => Some(token),
            Self::None | Self::Later => None,
        }
    }
}

impl From<Option<Token>> for RequiredToken {
    fn from(token: Option<Token>) -> Self {
        token.map_or(Self::None, Self::Given)
    }
}

/// Server side of a token: requires the token, or nothing if the server has no token.
#[derive(Clone, Debug)]
pub struct CheckToken {
    token: RequiredToken,
    log: Arc<LogLimiter>,
}

impl CheckToken {
    /// Creates the check of this token.
    #[must_use]
    pub fn new(token: RequiredToken) -> Self {
        Self { token, log: Arc::default() }
    }

    /// Checks a request's headers. The request's extensions identify the client in the log.
    ///
    /// # Errors
    ///
    /// UNAUTHENTICATED.
    pub fn check(&self, headers: &HeaderMap, extensions: &Extensions) -> Result<(), Status> {
        if !self.token.is_required() {
            return Ok(());
        }
        let token = self.token.given();
        let refusal = match headers.get(AUTHORIZATION).and_then(|header| shown_in(header.as_bytes())) {
            Some(shown) if token.is_some_and(|token| token.is(shown)) => return Ok(()),
            Some(_) => "the token is wrong",
            None => "expected the header \"authorization: Bearer TOKEN\", found no token",
        };
        self.log.pass(|left_out| {
            let peer = extensions.get::<SocketAddr>().map(tracing::field::display);
            tracing::warn!(peer, reason = refusal, left_out, "request refused");
        });
        Err(Status::unauthenticated(refusal))
    }
}

/// Returns the token of a header. The scheme may be in any case, followed by blanks (RFC 9110).
fn shown_in(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(SCHEME.len())?;
    let is_shown = scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) && token.starts_with(b" ");
    is_shown.then(|| token.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_token_passes() {
        let token = Token::new(" 0123456789abcdef\n", "a test").unwrap();
        let check = |required: RequiredToken, headers: &HeaderMap| {
            CheckToken::new(required).check(headers, &Extensions::new())
        };
        let given = || RequiredToken::Given(token.clone());
        let with = |header: HeaderValue| HeaderMap::from_iter([(AUTHORIZATION, header)]);
        let shown = with(token.header().unwrap());
        check(given(), &shown).unwrap();
        for header in
            ["", "Bearer ", "Bearer 0123456789abcdeF", "Bearer 0123456789abcdef0", "0123456789abcdef"]
        {
            let refused = check(given(), &with(HeaderValue::from_static(header))).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::Unauthenticated, "{header}");
        }
        assert!(check(given(), &HeaderMap::new()).is_err());
        assert!(check(RequiredToken::Later, &shown).is_err());
        check(RequiredToken::None, &HeaderMap::new()).unwrap();
    }

    #[test]
    fn errors_do_not_reveal_tokens() {
        let long = "x".repeat(MAX_LENGTH + 1);
        for text in ["", "short", "with a blank in it....", "ümläüte-are-no-ascii", &long] {
            let error = Token::new(text, "a test").unwrap_err().to_string();
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef", "a test").unwrap()), "Token(…)");
    }
}
