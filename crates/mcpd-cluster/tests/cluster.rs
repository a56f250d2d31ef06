//! Fronts and workers with a real NATS server, real processes, and faults in between. The journal
//! that the scripts write is the judge.

#![cfg(target_os = "linux")]

#[path = "cluster/encryption.rs"]
mod encryption;
#[path = "cluster/examination.rs"]
mod examination;
#[path = "cluster/faults.rs"]
mod faults;
#[path = "cluster/fixture.rs"]
mod fixture;
#[path = "cluster/grants.rs"]
mod grants;
#[path = "cluster/hostile.rs"]
mod hostile;
#[path = "cluster/hosts.rs"]
mod hosts;
#[path = "cluster/nats.rs"]
mod nats;
#[path = "cluster/proxy.rs"]
mod proxy;
#[path = "cluster/runs.rs"]
mod runs;
#[path = "cluster/servers.rs"]
mod servers;
#[path = "cluster/sessions.rs"]
mod sessions;
#[path = "cluster/stops.rs"]
mod stops;
#[path = "cluster/store.rs"]
mod store;
#[path = "cluster/task_client.rs"]
mod task_client;
#[path = "cluster/tasks.rs"]
mod tasks;
