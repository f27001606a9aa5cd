//! A line to a server that can fall silent, as when the server's machine is gone: nothing comes any more, and nobody says so.

use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// On a runtime of one thread, no answer comes while a future of the test is polled: who asks has to wait.
pub struct Line {
    pub port: u16,
    hushed: Arc<watch::Sender<()>>,
}

impl Line {
    pub async fn to(host: &str, port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let line = Line { port: listener.local_addr().unwrap().port(), hushed: Arc::default() };
        let (hushed, there) = (Arc::clone(&line.hushed), (host.to_owned(), port));
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut silence = hushed.subscribe();
                let mut far = TcpStream::connect((there.0.as_str(), there.1)).await.unwrap();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = silence.changed() => std::future::pending().await,
                    }
                });
            }
        });
        line
    }

    /// Silences whoever is connected. Who comes later reaches the server, as where another machine has taken its place.
    pub fn hush(&self) {
        self.hushed.send_replace(());
    }
}
