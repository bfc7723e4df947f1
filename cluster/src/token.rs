//! The token of a cluster. A coordinator makes it once and keeps it in the store, in the folder of its queue. Workers
//! read it there. Clients of the same user on the same machine find it in a private folder, one file per address.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Result;
use exact2048_net::token::{Token, TokenError};
use exact2048_storage::{Location, StoreSettings};
use rand::Rng;
use rustix::process::geteuid;
use tonic::transport::Uri;

use crate::names;
use crate::random::generator;

/// Name of the token's file in the folder of the queue.
const NAME: &str = "token";

/// Permissions of files and of folders that only the owner may access.
const OWNER_ONLY: u32 = 0o600;
const OWNER_ONLY_FOLDER: u32 = 0o700;

/// Returns the token of a store, and makes it at the first start. Blocks on the store. The caller must own the queue.
///
/// # Errors
///
/// An error of the store, or a token file with invalid contents.
pub fn make(store: &Location) -> Result<Token> {
    let place = store.child(names::QUEUE)?;
    let [high, low]: [u128; 2] = generator()?.random();
    let made = place.create_private(NAME, format!("{high:032x}{low:032x}\n").as_bytes())?;
    Ok(parsed(&made, &place)?)
}

/// Reads the token of a store; `None` before the first start of its coordinator. Blocks on the store.
///
/// # Errors
///
/// Those of [`make`].
pub fn of_store(store: &Location) -> Result<Option<Token>> {
    let place = store.child(names::QUEUE)?;
    let found = place.read_private(NAME)?;
    Ok(found.map(|bytes| parsed(&bytes, &place)).transpose()?)
}

fn parsed(bytes: &[u8], place: &Location) -> Result<Token, TokenError> {
    Token::new(&String::from_utf8_lossy(bytes), &place.place().join(NAME).to_string())
}

/// The token file of a running coordinator, for clients of the same user. Dropping this value removes the file.
///
/// If the coordinator is killed, the file stays without a lock. Clients ignore such a file, so they do not send the
/// token to a later server at the same address.
#[derive(Debug)]
pub struct Announcement {
    path: PathBuf,
    _lock: File,
}

impl Announcement {
    /// Announces the token of the coordinator at this address.
    ///
    /// # Errors
    ///
    /// An I/O error, or a folder of another user.
    pub fn make(address: SocketAddr, token: &Token) -> io::Result<Self> {
        Self::make_in(&runtime_folder(), address, token)
    }

    fn make_in(folder: &Path, address: SocketAddr, token: &Token) -> io::Result<Self> {
        make_private(folder)?;
        let path = folder.join(file_name(address));
        let mut options = File::options();
        let mut file = options.create(true).truncate(false).write(true).mode(OWNER_ONLY).open(&path)?;
        file.try_lock()?;
        file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
        file.set_len(0)?;
        file.write_all(format!("{}\n", token.secret()).as_bytes())?;
        Ok(Self { path, _lock: file })
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // If the removal fails, clients ignore the file, because its lock ends with this value.
        let _ = fs::remove_file(&self.path);
    }
}

/// Finds the token of a coordinator of this user on this machine; `None` for other coordinators.
#[must_use]
pub fn announced(coordinator: &str) -> Option<Token> {
    announced_in(&runtime_folder(), coordinator)
}

fn announced_in(folder: &Path, coordinator: &str) -> Option<Token> {
    let uri: Uri = coordinator.parse().ok()?;
    let port = uri.port_u16()?;
    // A client of a remote coordinator usually stops here, before a second look-up of the coordinator's host name.
    let suffix = format!(":{port}");
    let mut names = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.file_name());
    names.find(|name| name.to_string_lossy().ends_with(&suffix))?;
    let targets = (uri.host()?.trim_matches(['[', ']']), port).to_socket_addrs().ok()?;
    let targets: Vec<SocketAddr> = targets.collect();
    if !targets.iter().all(|target| is_of_this_machine(target.ip())) {
        return None;
    }
    let any = [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()];
    let any = any.map(|ip| SocketAddr::new(ip, port));
    targets.into_iter().chain(any).find_map(|address| read_announced(&folder.join(file_name(address))))
}

/// Reads the token in a coordinator's file; `None` if that coordinator no longer runs.
fn read_announced(path: &Path) -> Option<Token> {
    let file = exact2048_files::open(path).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let mut text = String::new();
    (&file).take(u64::from(u16::MAX)).read_to_string(&mut text).ok()?;
    Token::new(&text, &path.display().to_string()).ok()
}

/// Returns whether this machine has the address. Only such an address can be bound.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

fn file_name(address: SocketAddr) -> String {
    SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()
}

/// Returns the folder for the token files of this user's coordinators.
fn runtime_folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder).join("exact2048"),
        None => StoreSettings::default().cache_folder().join("run"),
    }
}

/// Creates a folder that only its owner may enter. An existing folder of this user gets the same permissions.
fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(OWNER_ONLY_FOLDER).create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        let what = format!(
            "expected a folder of this user at {}, found another owner or no folder",
            folder.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    fs::set_permissions(folder, Permissions::from_mode(OWNER_ONLY_FOLDER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_store_has_one_token() {
        let place = tempfile::tempdir().unwrap();
        let store = Location::from(place.path());
        assert!(of_store(&store).unwrap().is_none());
        fs::create_dir(place.path().join(names::QUEUE)).unwrap();
        let made = make(&store).unwrap();
        assert_eq!(made.secret().len(), 64);
        assert_eq!(make(&store).unwrap().secret(), made.secret());
        assert_eq!(of_store(&store).unwrap().unwrap().secret(), made.secret());
        let file = place.path().join(names::QUEUE).join(NAME);
        assert_eq!(mode(&file), 0o600);
        fs::write(&file, "short").unwrap();
        assert!(make(&store).unwrap_err().to_string().contains("token"), "the file is named");
    }

    #[test]
    fn a_token_is_found_only_while_its_coordinator_runs() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("of-user/exact2048");
        let token = Token::new("0123456789abcdef", "a test").unwrap();
        let found = |url: &str| announced_in(&folder, url).map(|token| token.secret().to_owned());
        let address = "127.0.0.1:2049".parse().unwrap();
        assert_eq!(found("http://127.0.0.1:2049"), None, "there is no folder");
        let announcement = Announcement::make_in(&folder, address, &token).unwrap();
        assert_eq!((mode(&folder), mode(&folder.join("127.0.0.1:2049"))), (0o700, 0o600));
        for url in ["http://127.0.0.1:2049", "https://localhost:2049/"] {
            assert_eq!(found(url).as_deref(), Some(token.secret()), "{url}");
        }
        for url in ["http://127.0.0.1:2050", "http://127.0.0.2:2049", "http://192.0.2.1:2049", "no URL"] {
            assert_eq!(found(url), None, "{url}");
        }
        drop(announcement);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        // A killed coordinator leaves its file without a lock.
        fs::write(folder.join("127.0.0.1:2049"), "0123456789abcdef\n").unwrap();
        assert_eq!(found("http://127.0.0.1:2049"), None);
        // All addresses of this machine lead to a coordinator that listens on all of them.
        let _everywhere = Announcement::make_in(&folder, "0.0.0.0:2049".parse().unwrap(), &token).unwrap();
        assert_eq!(found("http://127.0.0.2:2049").as_deref(), Some(token.secret()));
    }

    #[test]
    fn a_folder_that_others_could_enter_is_restricted_or_refused() {
        let place = tempfile::tempdir().unwrap();
        let (folder, address) = (place.path().join("open"), "127.0.0.1:2049".parse().unwrap());
        let token = Token::new("0123456789abcdef", "a test").unwrap();
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        Announcement::make_in(&folder, address, &token).unwrap();
        assert_eq!(mode(&folder), 0o700);
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        let refused = Announcement::make_in(&link, address, &token).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}
