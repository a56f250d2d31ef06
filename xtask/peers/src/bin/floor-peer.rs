//! Least server of a script: it starts the script and returns what that prints. It limits,
//! confines, checks and records nothing.
//!
//! `floor-peer http DIR` and `floor-peer stdio DIR` call `DIR/greet`, whatever the request. Without
//! a name to greet the server over HTTP answers at once, as a function does.

use std::convert::Infallible;
use std::io::{self, BufRead as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

/// Threads that start scripts for the server over HTTP, whose runtime does the rest.
const SPAWNERS: usize = 2;

/// Threads of the server over stdio, each of which stays with its script.
const RUNNERS: usize = 8;

/// The members of a call that matter.
#[derive(serde::Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    params: Params,
}

#[derive(serde::Deserialize)]
struct Params {
    arguments: Arguments,
}

#[derive(serde::Deserialize)]
struct Arguments {
    name: Option<String>,
}

/// A start that the runtime waits for.
struct Start {
    name: String,
    reply: oneshot::Sender<io::Result<Child>>,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (transport, directory) = arguments.next().zip(arguments.next()).unzip();
    let script = Path::new(&directory.unwrap_or_default()).join("greet");
    match transport.as_deref() {
        Some("http") => serve_http(script),
        Some("stdio") => serve_stdio(script),
        _ => bail!("usage: floor-peer http|stdio DIR"),
    }
}

#[tokio::main]
async fn serve_http(script: PathBuf) -> anyhow::Result<()> {
    let starts = threads(SPAWNERS, move |Start { name, reply }| {
        // A client that has gone needs no answer.
        reply.send(start(&script, &name)).ok();
    });
    let service = service_fn(move |request| respond(request, starts.clone()));
    mcpd_peers::serve(service).await.context("listen")
}

async fn respond(
    request: Request<Incoming>,
    starts: Sender<Start>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    Ok(match call(&body, &starts).await {
        Ok(message) => {
            let mut response = Response::new(Full::from(message));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            response
        }
        Err(error) => {
            let mut refusal = Response::new(Full::from(format!("{error:#}")));
            *refusal.status_mut() = StatusCode::BAD_REQUEST;
            refusal
        }
    })
}

async fn call(body: &[u8], starts: &Sender<Start>) -> anyhow::Result<String> {
    let call: Call<'_> = serde_json::from_slice(body)?;
    let Some(name) = call.params.arguments.name else {
        return Ok(answer(call.id, "{}"));
    };
    let (reply, started) = oneshot::channel();
    starts.send(Start { name, reply }).context("no spawner")?;
    let text = collect(started.await??).await?;
    Ok(answer(call.id, &text))
}

/// Reads what a script prints, and waits for its end.
async fn collect(mut child: Child) -> anyhow::Result<String> {
    let stdout: OwnedFd = child.stdout.take().context("a pipe")?.into();
    let stderr: OwnedFd = child.stderr.take().context("a pipe")?.into();
    let mut stdout = pipe::Receiver::from_owned_fd(stdout)?;
    let mut stderr = pipe::Receiver::from_owned_fd(stderr)?;
    let (mut text, mut messages) = (String::new(), Vec::new());
    tokio::try_join!(
        stdout.read_to_string(&mut text),
        stderr.read_to_end(&mut messages)
    )?;
    if child.try_wait()?.is_none() {
        let pid = Pid::from_child(&child);
        let ended = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        #[expect(deprecated, reason = "its successor is unsafe")]
        let ended = AsyncFd::with_interest(ended, Interest::READABLE)?;
        ended.readable().await?.retain_ready();
        child.wait()?;
    }
    Ok(text)
}

fn serve_stdio(script: PathBuf) -> anyhow::Result<()> {
    let calls = threads(RUNNERS, move |line: Vec<u8>| {
        if let Err(error) = print_answer(&script, &line) {
            writeln!(io::stderr(), "{error:#}").ok();
        }
    });
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        calls.send(line).context("no runner")?;
    }
}

fn print_answer(script: &Path, line: &[u8]) -> anyhow::Result<()> {
    let call: Call<'_> = serde_json::from_slice(line)?;
    let name = call.params.arguments.name.context("no name")?;
    let child = start(script, &name)?;
    let output = child.wait_with_output()?;
    let message = answer(call.id, str::from_utf8(&output.stdout)?) + "\n";
    io::stdout().lock().write_all(message.as_bytes())?;
    Ok(io::stdout().lock().flush()?)
}

/// Starts threads that do one thing with what is sent to them.
fn threads<T: Send + 'static>(count: usize, work: impl Fn(T) + Send + Sync + 'static) -> Sender<T> {
    let (sender, receiver) = mpsc::channel();
    let (receiver, work) = (Arc::new(Mutex::new(receiver)), Arc::new(work));
    for _ in 0..count {
        let (receiver, work) = (Arc::clone(&receiver), Arc::clone(&work));
        thread::spawn(move || {
            while let Some(item) = next(&receiver) {
                work(item);
            }
        });
    }
    sender
}

/// Waits for the next item. `None` when all senders are gone.
fn next<T>(receiver: &Mutex<Receiver<T>>) -> Option<T> {
    let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
    receiver.recv().ok()
}

/// Starts the script, and writes its input.
#[expect(
    clippy::disallowed_methods,
    reason = "this is what the executor is compared with"
)]
fn start(script: &Path, name: &str) -> io::Result<Child> {
    let mut child = Command::new(script)
        .env("MCPD_OPT_name", name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A script need not read its input.
        stdin
            .write_all(json!({ "name": name }).to_string().as_bytes())
            .ok();
    }
    Ok(child)
}

fn answer(id: &RawValue, text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":{text}}}],"isError":false}}}}"#
    )
}
