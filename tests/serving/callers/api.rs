//! Stand-in for the API of a service, on this machine: notes for whom it is called with which
//! credential, and discloses that in its answer.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Running API. Its threads end with the process.
pub(super) struct Api {
    pub(super) url: String,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Api {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let calls = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&calls);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                answer(&stream, &noted).ok();
            }
        });
        Self { url, calls }
    }

    /// Returns the calls so far, each as `CALLER=CREDENTIAL`.
    pub(super) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

fn answer(mut stream: &TcpStream, calls: &Mutex<Vec<String>>) -> io::Result<()> {
    let [mut credential, mut caller] = [String::new(), String::new()];
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_lowercase().as_str() {
            "authorization" => {
                credential = value.replace("Bearer", "").trim().to_owned();
            }
            "x-caller" => caller = value.trim().to_owned(),
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    calls.lock().unwrap().push(format!("{caller}={credential}"));
    let length = credential.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{credential}"
    )
}
