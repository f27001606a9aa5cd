//! The loopback ports of an installation's processes: the same at every start, if they are free.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// Ports by service, saved in a file.
pub(super) struct Ports {
    file: PathBuf,
    ports: BTreeMap<String, u16>,
    /// Bound until all ports are chosen, so that they differ.
    listeners: Vec<TcpListener>,
}

impl Ports {
    /// Reads the ports of the last start. A missing or malformed file is empty.
    pub(super) fn read(dir: &Path) -> Self {
        let file = dir.join("ports.json");
        let ports =
            fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Ports { file, ports, listeners: Vec::new() }
    }

    /// Chooses the service's last port, or a free one.
    pub(super) fn choose(&mut self, service: &str) -> io::Result<u16> {
        let last = self.ports.get(service).and_then(|&port| bind(port).ok());
        let listener = last.map_or_else(|| bind(0), Ok)?;
        let port = listener.local_addr()?.port();
        self.listeners.push(listener);
        self.ports.insert(service.to_owned(), port);
        Ok(port)
    }

    /// Saves the ports and releases them for their services.
    pub(super) fn save(self) -> io::Result<()> {
        fs::write(&self.file, serde_json::to_vec_pretty(&self.ports)?)
    }
}

/// Binds a loopback port; fails if it is in use.
pub(super) fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_stay_the_same_unless_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let mut ports = Ports::read(dir.path());
        let (first, second) = (ports.choose("a").unwrap(), ports.choose("b").unwrap());
        assert_ne!(first, second);
        ports.save().unwrap();

        let other_process = bind(second).unwrap();
        let mut restarted = Ports::read(dir.path());
        assert_eq!(restarted.choose("a").unwrap(), first);
        assert_ne!(restarted.choose("b").unwrap(), second);
        drop(other_process);
    }
}
