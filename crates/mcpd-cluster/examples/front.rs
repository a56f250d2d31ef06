//! Front of a cluster for one client on the standard streams: `front URL NODE`. Its client is
//! `ada`, and its tasks are those of all fronts.

use mcpd_cluster::{Cluster, Settings, SharedTasks};
use mcpd_server::transport::stdio::{self, Options};
use mcpd_server::{Principal, Server};
use tokio::signal::unix::{SignalKind, signal};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().ok_or("front URL NODE");
    let (url, node) = (argument()?, argument()?);
    let settings = Settings::new(vec![url], node.parse()?);
    let tasks = SharedTasks::new(settings.clone(), 1);
    let cluster = Cluster::new(settings).with_tasks(tasks.clone());
    let server = Server::builder()
        .source(cluster.clone())
        .task_store(tasks)
        .state_secret("the secret that all fronts share")
        .start()?;
    let mut options = Options::default();
    options.principal = Principal::new("ada");
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        served = stdio::serve(&server, std::io::stdin(), std::io::stdout(), options) => served?,
        never = cluster.share_events(&server) => match never {},
        _ = terminate.recv() => {}
    }
    cluster.begin_departure();
    server.shutdown().await;
    cluster.departed().await;
    // A read of the standard input may go on.
    std::process::exit(0)
}
