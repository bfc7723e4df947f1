//! Settings of an S3 store, from the environment variables that S3 programs share.
//!
//! This module checks each value once, because the S3 library panics on invalid values and the HTTP client ignores an
//! invalid proxy. The module also trims the values, because Kubernetes secrets often end with a line feed.

use std::ffi::OsString;

use url::{Host, Url};

use crate::StorageError;
use crate::error::refused;

const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN: &str = "AWS_SESSION_TOKEN";
const ALLOW_HTTP: &str = "AWS_ALLOW_HTTP";

/// Variables of the region and of the endpoint. The first variable that is set applies.
const REGION: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];
const ENDPOINT: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

/// Variables of proxies. The HTTP client reads their values unchanged.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Checked settings of an S3 store.
pub(crate) struct S3Settings {
    key_id: Option<String>,
    secret_key: Option<String>,
    pub(super) token: Option<String>,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
    pub(super) allow_http: bool,
}

/// Checks the S3 variables that are set, for a process that learns later which stores it uses.
///
/// # Errors
///
/// [`StorageError::Settings`] with the variable's name, without its value.
pub fn check_environment() -> Result<(), StorageError> {
    S3Settings::of_environment().map(drop).map_err(|reason| refused("an S3 store", reason))
}

impl S3Settings {
    /// Reads the settings from the environment of this process.
    ///
    /// # Errors
    ///
    /// A sentence that names the variable and the expected form. The sentence omits the value, because the value may
    /// be secret.
    pub(crate) fn of_environment() -> Result<Self, String> {
        Self::read(|name| std::env::var_os(name))
    }

    /// Reads the settings from the environment given by `variable`.
    pub(super) fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let environment = Environment(variable);
        environment.check_proxies()?;
        let allow_http = environment.allow_http()?;
        let endpoint = environment.first_of(&ENDPOINT)?;
        Ok(Self {
            key_id: environment.read(KEY_ID)?.map(|value| in_header(KEY_ID, value)).transpose()?,
            secret_key: environment.read(SECRET_KEY)?,
            token: environment.read(TOKEN)?.map(|value| in_header(TOKEN, value)).transpose()?,
            region: environment.first_of(&REGION)?.map(|(name, value)| region(name, value)).transpose()?,
            endpoint: endpoint.map(|(name, value)| endpoint_url(name, &value, allow_http)).transpose()?,
            allow_http,
        })
    }

    /// Returns the two keys.
    ///
    /// The keys are required. Without them, the library would ask a cloud's metadata service, which may not answer for
    /// a long time.
    ///
    /// # Errors
    ///
    /// A sentence that names the missing variable.
    pub(super) fn keys(&self) -> Result<(String, String), String> {
        let required = |name, value: &Option<String>| {
            value
                .clone()
                .ok_or_else(|| format!("{name} is not set; set {KEY_ID} and {SECRET_KEY} in the environment"))
        };
        Ok((required(KEY_ID, &self.key_id)?, required(SECRET_KEY, &self.secret_key)?))
    }
}

/// Lookup of environment variables by name.
struct Environment<V>(V);

impl<V: Fn(&str) -> Option<OsString>> Environment<V> {
    /// Reads a variable and trims it. An empty value counts as not set.
    fn read(&self, name: &str) -> Result<Option<String>, String> {
        let Some(value) = (self.0)(name) else { return Ok(None) };
        let value = value.into_string().map_err(|_| format!("{name} is not UTF-8"))?;
        let value = value.trim();
        if value.contains(char::is_control) {
            return Err(format!(
                "{name} contains a control character such as a line end; set it to one line"
            ));
        }
        Ok((!value.is_empty()).then(|| value.to_owned()))
    }

    /// Reads the first of these variables that is set, with its name.
    fn first_of<'a>(&self, names: &[&'a str]) -> Result<Option<(&'a str, String)>, String> {
        for name in names {
            if let Some(value) = self.read(name)? {
                return Ok(Some((name, value)));
            }
        }
        Ok(None)
    }

    fn allow_http(&self) -> Result<bool, String> {
        match self.read(ALLOW_HTTP)?.map(|value| value.to_ascii_lowercase()).as_deref() {
            None | Some("false" | "0" | "no") => Ok(false),
            Some("true" | "1" | "yes") => Ok(true),
            Some(_) => Err(format!("expected true or false in {ALLOW_HTTP}")),
        }
    }

    fn check_proxies(&self) -> Result<(), String> {
        for name in PROXIES {
            let is_proxy = |value: &str| {
                let url = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
                Url::parse(&url).is_ok_and(|url| url.host().is_some_and(|host| is_plain(&host)))
            };
            let Some(value) = (self.0)(name).filter(|value| !value.is_empty()) else { continue };
            // The client does not trim the value.
            if !value.to_str().is_some_and(|text| text.trim() == text && is_proxy(text)) {
                return Err(format!(
                    "{name} is not the URL of a proxy; write http://HOST:PORT, without quotes or blanks around it"
                ));
            }
        }
        Ok(())
    }
}

/// Checks a value for use in an HTTP header.
fn in_header(name: &str, value: String) -> Result<String, String> {
    if value.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(value);
    }
    Err(format!("{name} contains a blank or a character that is not ASCII; copy it again"))
}

/// Checks a region. A region becomes part of headers and, without an endpoint, of the host name.
fn region(name: &str, value: String) -> Result<String, String> {
    if is_name(&value) {
        return Ok(value);
    }
    Err(format!(
        "{name} is not the name of a region; write letters, digits, '-', '_' and '.', such as us-east-1"
    ))
}

/// Parses a server URL into the one form that the library accepts.
fn endpoint_url(name: &str, value: &str, allow_http: bool) -> Result<String, String> {
    let wrong = || {
        format!(
            "{name} is not the URL of a server; write https://HOST or https://HOST:PORT, without quotes, user name or \
             '?'"
        )
    };
    let url = Url::parse(value).map_err(|_| wrong())?;
    let is_bare = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
        && url.port() != Some(0);
    if !is_bare
        || !url.host().is_some_and(|host| is_plain(&host))
        || !url.path().bytes().all(is_plain_in_path)
    {
        return Err(wrong());
    }
    match url.scheme() {
        "https" => {}
        "http" if allow_http => {}
        "http" => {
            return Err(format!(
                "{name} is http:// without encryption; set {ALLOW_HTTP}=true to allow that, or give an https:// \
                 endpoint"
            ));
        }
        _ => return Err(wrong()),
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Returns whether a host is an address or an ordinary host name. The URL standard allows hosts that HTTP libraries
/// refuse.
fn is_plain(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => is_name(name),
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    }
}

fn is_plain_in_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/%-._~:@!$&'()*+,;=".contains(&byte)
}

/// Returns whether a text can name a bucket, a region or a host, without characters special in URLs or headers.
pub(super) fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.chars().all(is_plain) && text.contains(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use futures_util::FutureExt;
    use object_store::ObjectStoreExt;
    use object_store::path::Path;
    use proptest::prelude::*;

    use super::*;
    use crate::store::s3;

    /// Values of the variables that a test does not set.
    const USUAL: [(&str, &str); 4] = [
        (KEY_ID, "key"),
        (SECRET_KEY, "secret"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        (ALLOW_HTTP, "true"),
    ];

    /// Every variable that the module reads.
    const VARIABLES: [&str; 14] = [
        KEY_ID,
        SECRET_KEY,
        TOKEN,
        ALLOW_HTTP,
        REGION[0],
        REGION[1],
        ENDPOINT[0],
        ENDPOINT[1],
        PROXIES[0],
        PROXIES[1],
        PROXIES[2],
        PROXIES[3],
        PROXIES[4],
        PROXIES[5],
    ];

    /// Hostile values. Most contain the word `hush`, which no message may repeat.
    const HOSTILE: [&str; 16] = [
        "\"https://hush\"",
        "'hush'",
        "hush:99999",
        "http://hush:99999",
        "http://hush:x",
        "http://hu sh",
        "http://\"hush\"",
        "https://hush{}",
        "https://user:hush@host",
        "https://host/?hush",
        "http://",
        "http:///",
        "ftp://hush",
        "hu\nsh",
        "h\u{fc}sh",
        "[hush",
    ];

    fn with(name: &str, value: &OsString) -> Result<S3Settings, String> {
        let usual =
            |wanted: &str| USUAL.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.into());
        S3Settings::read(|wanted| if wanted == name { Some(value.clone()) } else { usual(wanted) })
    }

    /// Opens the store and begins a request. On a bad setting the library panics before it waits for the network.
    fn begins_a_request(settings: &S3Settings) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let store = s3::open("bucket", settings).unwrap();
        let _ = store.get(&Path::from("object")).now_or_never();
        runtime.shutdown_background();
    }

    /// Checks that a value is either refused or accepted by the library. A refusal names the variable and does not
    /// repeat the value.
    fn is_refused_or_works(name: &str, value: &OsString) {
        match with(name, value) {
            Ok(settings) if settings.keys().is_ok() => begins_a_request(&settings),
            Ok(_) => {}
            Err(reason) => {
                assert!(reason.contains(name), "{name}={value:?}: {reason}");
                assert!(!reason.contains("hush"), "{name}={value:?}: {reason}");
            }
        }
    }

    #[test]
    fn hostile_values_are_refused_by_the_name_of_the_variable() {
        for name in VARIABLES {
            for value in HOSTILE {
                is_refused_or_works(name, &value.into());
            }
            is_refused_or_works(name, &OsString::from_vec(b"hush\xff".to_vec()));
        }
        for name in [ENDPOINT[0], ENDPOINT[1], ALLOW_HTTP, REGION[0], REGION[1], PROXIES[0]] {
            for value in &HOSTILE[..8] {
                assert!(with(name, &value.into()).is_err(), "{name}={value}");
            }
        }
        for value in HOSTILE {
            assert!(with(ENDPOINT[0], &value.into()).is_err(), "{value}");
        }
    }

    #[test]
    fn blanks_and_slashes_around_a_value_are_removed() {
        let read = with(ENDPOINT[1], &" https://host:9000/minio/\r\n".into()).unwrap();
        assert_eq!(read.endpoint.as_deref(), Some("https://host:9000/minio"));
        assert_eq!(with(KEY_ID, &"key\n".into()).unwrap().keys().unwrap().0, "key");
        assert_eq!(with(SECRET_KEY, &"a/b+c=\n".into()).unwrap().keys().unwrap().1, "a/b+c=");
        assert_eq!(with(TOKEN, &"t/+=\n".into()).unwrap().token.as_deref(), Some("t/+="));
        assert_eq!(
            with(REGION[1], &"eu-central-1\n".into()).unwrap().region.as_deref(),
            Some("eu-central-1")
        );
        assert!(with(ALLOW_HTTP, &"TRUE\n".into()).unwrap().allow_http);
    }

    #[test]
    fn keys_are_required() {
        let missing = |name| with(name, &"\n".into()).unwrap().keys().unwrap_err();
        assert!(missing(KEY_ID).starts_with("AWS_ACCESS_KEY_ID is not set"));
        assert!(missing(SECRET_KEY).starts_with("AWS_SECRET_ACCESS_KEY is not set"));
    }

    #[test]
    fn plain_http_must_be_allowed() {
        let refused = with(ALLOW_HTTP, &"no".into()).err().unwrap();
        assert!(refused.contains("AWS_ALLOW_HTTP=true"), "{refused}");
    }

    #[test]
    fn proxies_that_the_client_would_ignore_are_refused() {
        for (value, is_fine) in [
            ("proxy:3128", true),
            ("http://user:word@proxy:3128", true),
            ("socks5h://127.0.0.1:1080", true),
            ("", true),
            ("\"http://proxy:3128\"", false),
            ("http://proxy:3128\n", false),
            ("http://", false),
            ("proxy port", false),
        ] {
            assert_eq!(with("https_proxy", &value.into()).is_ok(), is_fine, "{value:?}");
        }
    }

    proptest! {
        /// The library does not panic on any accepted value.
        #[test]
        fn no_value_makes_the_library_panic(which in 0..VARIABLES.len(), value in "(https?://)?[ -~äλ\n]{0,12}") {
            if let Ok(settings) = with(VARIABLES[which], &value.into()) && settings.keys().is_ok() {
                begins_a_request(&settings);
            }
        }
    }
}
