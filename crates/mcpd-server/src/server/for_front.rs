//! What servers do for each other, where one serves the scripts of another, or the same clients:
//! see [`remote`](crate::remote).

use std::ops::Range;
use std::sync::Arc;

use mcpd_exec::Outcome;

use super::Server;
use crate::catalog::announced::{AnnouncedScript, AnnouncedScripts};
use crate::client::subscribers::Event;
use crate::execution::for_front;
use crate::execution::relay::stream_name;
use crate::remote::{
    Announcement, KeptOutput, Load, NotRun, OnLine, OutputPart, Request, SharedEvent, SharedEvents,
};

impl Server {
    /// Returns the scripts of its directories, with what they said of themselves.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn announcements(&self) -> Arc<[Announcement]> {
        Arc::clone(&self.announced().await.announcements)
    }

    /// Waits until the announcements differ from `known`, and returns them.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn announcements_changed(&self, known: &[Announcement]) -> Arc<[Announcement]> {
        let mut published = self.live_catalog().publications();
        loop {
            published.borrow_and_update();
            let now = self.announcements().await;
            if *now != *known {
                return now;
            }
            if published.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Runs a script for another server, if that means the version that is here. Its command, its
    /// environment, its secrets and its sandbox are those of this server, and of the limits the
    /// stricter ones hold. Lines and outputs come without secrets.
    ///
    /// # Errors
    ///
    /// Nothing was run: see [`NotRun`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the script as a cancelled call does.
    pub async fn execute(&self, request: Request, on_line: OnLine<'_>) -> Result<Outcome, NotRun> {
        let AnnouncedScript {
            script, version, ..
        } = self.find_announced(&request).await?;
        for_front::execute(self.engine(), &script, version, request, on_line).await
    }

    /// Checks what can be checked of a request before it waits for its turn.
    ///
    /// # Errors
    ///
    /// [`NotRun::Unknown`], [`NotRun::Digest`], [`NotRun::Level`] or [`NotRun::Draining`].
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn check_request(&self, request: &Request) -> Result<(), NotRun> {
        let announced = self.find_announced(request).await?;
        match announced.script.policy.sandbox().level >= request.level {
            true => Ok(()),
            false => Err(NotRun::Level),
        }
    }

    /// Reads a part of an output that [`execute`](Self::execute) has kept. A part that is shorter
    /// than `range` is the last.
    ///
    /// # Errors
    ///
    /// [`NotRun::Unknown`] if it is not there any more, or belongs to another caller.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn read_kept(
        &self,
        output: &KeptOutput,
        range: Range<u64>,
    ) -> Result<OutputPart, NotRun> {
        let KeptOutput {
            run,
            stream,
            principal,
            ..
        } = output;
        for_front::read(self.engine(), run, stream_name(*stream), principal, range).await
    }

    /// Returns how busy it is.
    #[must_use]
    pub fn load(&self) -> Load {
        let executor = self.executor();
        Load::new(
            executor.concurrency(),
            executor.running(),
            self.engine().admission.runs.waiting(),
        )
    }

    /// Returns a receiver of the events that concern the subscribers of other fronts, from now on.
    #[must_use]
    pub fn shared_events(&self) -> SharedEvents {
        self.engine().subscribers.outlet.events()
    }

    /// Notifies the subscribers here of an event of another front.
    pub fn receive_event(&self, event: SharedEvent) {
        let event = match event {
            SharedEvent::ResourceUpdated { uri } => Event::ResourceUpdated(uri),
            SharedEvent::TaskChanged { task } => Event::TaskChanged(task),
            SharedEvent::TaskRequested { task } => {
                if let Some(tasks) = self.tasks() {
                    tasks.check_requests(&task);
                }
                return;
            }
            event @ (SharedEvent::ClientMessage { .. } | SharedEvent::SessionEnded { .. }) => {
                #[cfg(feature = "http")]
                self.engine().subscribers.session_inlet.pass(|| event);
                #[cfg(not(feature = "http"))]
                drop(event);
                return;
            }
        };
        self.engine().subscribers.publish_here(&event);
    }

    async fn announced(&self) -> Arc<AnnouncedScripts> {
        self.catalog_ready().await;
        let live = self.live_catalog();
        live.announcer.scripts(live.current()).await
    }

    async fn find_announced(&self, request: &Request) -> Result<AnnouncedScript, NotRun> {
        if self.engine().stopping.is_cancelled() {
            return Err(NotRun::Draining);
        }
        let announced = self.announced().await;
        let script = announced.script(&request.path).ok_or(NotRun::Unknown)?;
        match *script.digest == *request.digest {
            true => Ok(script.clone()),
            false => Err(NotRun::Digest),
        }
    }
}
