//! Worker in the same process: what a front sends it crosses as JSON and bytes, as over a network.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use mcpd_exec::Outcome;
use mcpd_server::Server;
use mcpd_server::remote::{
    Announcement, KeptOutput, NotRun, OnEvent, OutputPart, Pending, Place, Request, RunEvent,
};
use mcpd_server::source::{Publisher, Source};

/// Change of a request on its way, or its refusal.
pub(crate) type Interfere = dyn Fn(&mut Request) -> Result<(), NotRun> + Send + Sync;

/// Worker that a front reaches directly.
#[derive(Clone)]
pub(crate) struct Loopback {
    pub(crate) worker: Server,
    /// What happens to requests on their way.
    pub(crate) interfere: Arc<Interfere>,
}

impl Loopback {
    pub(crate) fn to(worker: &Server) -> Self {
        Self {
            worker: worker.clone(),
            interfere: Arc::new(|_| Ok(())),
        }
    }

    /// Sends a request there.
    async fn send(&self, request: Request, on_event: OnEvent<'_>) -> Result<Outcome, NotRun> {
        let head = serde_json::to_string(&request).expect("JSON");
        let mut there: Request = serde_json::from_str(&head).expect("a request");
        (there.arguments, there.files) = (request.arguments, request.files);
        there.run = format!("{}.1", request.run);
        on_event(RunEvent::sent("loopback", &there.run));
        (self.interfere)(&mut there)?;
        self.worker.check_request(&there).await?;
        let mut on_line = |line: mcpd_exec::Line<'_>| on_event(RunEvent::Line(line));
        let outcome = self.worker.execute(there, &mut on_line).await?;
        let outcome = serde_json::to_string(&outcome).expect("JSON");
        Ok(serde_json::from_str(&outcome).expect("an outcome"))
    }
}

/// Sends an announcement through JSON.
fn announce(announcement: &Announcement) -> Announcement {
    let head = serde_json::to_string(announcement).expect("JSON");
    let mut there: Announcement = serde_json::from_str(&head).expect("an announcement");
    let parts = announcement.description.parts().map(Bytes::clone);
    there.description.set_parts(parts);
    there
}

impl Place for Loopback {
    fn run<'a>(&'a self, request: Request, on_event: OnEvent<'a>) -> Pending<'a, Outcome> {
        Box::pin(self.send(request, on_event))
    }

    fn read<'a>(&'a self, output: &'a KeptOutput, range: Range<u64>) -> Pending<'a, OutputPart> {
        assert_eq!(output.worker, "loopback");
        Box::pin(self.worker.read_kept(output, range))
    }
}

impl Source for Loopback {
    async fn run(self, publisher: Publisher) {
        let mut known = self.worker.announcements().await;
        loop {
            let mut offer = publisher.offer();
            for announcement in known.iter().map(announce) {
                offer.script(&announcement, Arc::new(self.clone()));
            }
            publisher.publish(offer);
            known = self.worker.announcements_changed(&known).await;
        }
    }

    fn follows_policy(&self) -> bool {
        true
    }
}

impl fmt::Display for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the worker `loopback`")
    }
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loopback")
    }
}
