//! Subscriptions, more and more of them, each on a connection of its own, that hear of one change.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::bench::findings::{Findings, Growth, Table};
use crate::bench::lab::{Lab, SCRIPTS};
use crate::bench::sample::Spread;
use crate::client::Client;
use crate::request::Request;
use crate::server::{GREET, Home, Server};

const NUMBERS: [usize; 4] = [1, 10, 100, 1_000];

/// Time within which a change is heard.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn run(lab: &Lab, findings: &mut Findings) -> anyhow::Result<()> {
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let listen = Request::new("subscriptions/listen", wanted);
    let mut table = Table::new(["subscriptions", "from a new script to the last notice, ms"]);
    let mut growth = Growth::new("a change heard, ms, by subscriptions", "by the last");
    for number in NUMBERS.map(|number| lab.options.number(number)) {
        let home = Home::new(&SCRIPTS, "")?;
        let server = Server::serve(&lab.program(), home, &[]).await?;
        let mut clients = Vec::new();
        for _ in 0..number {
            let mut client = Client::connect(server.address(), server.token()).await?;
            client.send(&listen, 1).await?;
            clients.push(client);
        }
        let mut took = Vec::new();
        for round in 0..lab.options.rounds() {
            let begun = Instant::now();
            server.add(&format!("new{round}"), GREET)?;
            let mut waiting = JoinSet::new();
            for mut client in clients.drain(..) {
                waiting.spawn(async move {
                    let heard = client.wait_for("notifications/tools/list_changed");
                    timeout(TIMEOUT, heard).await??;
                    anyhow::Ok(client)
                });
            }
            while let Some(heard) = waiting.join_next().await {
                clients.push(heard??);
            }
            took.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let took = Spread::of(took);
        growth.add(number, took);
        table.row([number.to_string(), took.to_string()]);
        drop(clients);
        server.stop().await?;
    }
    findings.growths.push(growth);
    findings.table("growth-subscriptions", table);
    Ok(())
}
