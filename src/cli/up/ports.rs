//! Which loopback ports the processes of one folder listen on: the same at every start where they are free.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// The ports of one folder, kept in a file of it.
pub(super) struct Ports {
    file: PathBuf,
    known: BTreeMap<String, u16>,
    /// Held until all are chosen, so that no two services get the same.
    held: Vec<TcpListener>,
}

impl Ports {
    /// Reads the ports of the last start; a missing or broken file means that there was none.
    pub(super) fn read(dir: &Path) -> Self {
        let file = dir.join("ports.json");
        let known =
            fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Ports { file, known, held: Vec::new() }
    }

    /// Chooses the port of a service: the one it had, or a free one.
    pub(super) fn choose(&mut self, service: &str) -> io::Result<u16> {
        let known = self.known.get(service).and_then(|&port| bind(port).ok());
        let listener = known.map_or_else(|| bind(0), Ok)?;
        let port = listener.local_addr()?.port();
        self.held.push(listener);
        self.known.insert(service.to_owned(), port);
        Ok(port)
    }

    /// Writes the choice down and lets go of the ports for those who are to listen on them.
    pub(super) fn settle(self) -> io::Result<()> {
        fs::write(&self.file, serde_json::to_vec_pretty(&self.known)?)
    }
}

/// Takes a loopback port for a moment, which fails when somebody listens there.
pub(super) fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_kept_unless_somebody_else_has_them() {
        let dir = tempfile::tempdir().unwrap();
        let mut ports = Ports::read(dir.path());
        let (first, second) = (ports.choose("a").unwrap(), ports.choose("b").unwrap());
        assert_ne!(first, second);
        ports.settle().unwrap();

        let taken = bind(second).unwrap();
        let mut ports = Ports::read(dir.path());
        assert_eq!(ports.choose("a").unwrap(), first);
        assert_ne!(ports.choose("b").unwrap(), second);
        drop(taken);
    }
}
