//! Run of a script on another machine, for a request of a client here: the request that crosses,
//! the messages meanwhile, and the outcome as if it had run here.

use std::fmt;
use std::sync::{Arc, Mutex};

use mcpd_exec::Outcome;

use crate::client::request::context::Context;
use crate::execution::archive::MAX_BYTES;
use crate::execution::engine::Engine;
use crate::execution::run::{Ended, Job, Purpose};
use crate::execution::run_observer::RunObserver;
use crate::limits::admission::Rejection;
use crate::observe::ending::RunError;
use crate::remote::{self, KeptOutput, NotRun, OutputPart, Place, Request, RunEvent};
use crate::script::{Elsewhere, Script};
use crate::support::random_id;
use crate::support::sync::lock;

/// Number of bytes of a kept output that are read first: one part of a cluster's. Many are no
/// longer.
const FIRST_BYTES: u64 = 512 * 1024;
/// Number of bytes that are read at a time beyond the size that its worker has told.
const MORE_BYTES: u64 = 4 << 20;

/// Attempt of which a worker keeps the outputs that are longer than its outcome: the first part of
/// the path of their URIs, so that every front can find them.
#[derive(Debug, Clone)]
pub(crate) struct KeptAt {
    worker: String,
    run: String,
}

impl fmt::Display for KeptAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.worker, self.run)
    }
}

/// Returns the request for a run of `script`, without its input.
pub(crate) fn request(
    script: &Script,
    elsewhere: &Elsewhere,
    purpose: Purpose<'_>,
    context: &Context,
) -> Request {
    Request {
        run: random_id::new(),
        path: script.path.to_string(),
        digest: elsewhere.digest.to_string(),
        recorded_digest: None,
        purpose: remote::Purpose {
            method: purpose.method.to_owned(),
            name: purpose.name.to_owned(),
            call: purpose.call_id.to_owned(),
            principal: context.peer.principal.name().to_owned(),
        },
        question: remote::Question::Result,
        level: script.policy.sandbox().level,
        limits: script.policy.limits().clone(),
        lines: context.side.is_wanted() || context.record.passes_lines(),
        trace: context.trace.clone(),
        arguments: Default::default(),
        files: Vec::new(),
        traits: script.traits(),
        task: None,
    }
}

/// Runs a script elsewhere when its caller may have another call, and relays its messages to the
/// caller meanwhile.
///
/// # Errors
///
/// Fails if nothing was run, or its end is not known.
///
/// # Cancel safety
///
/// Dropping the future cancels the run.
pub(crate) async fn run(
    engine: &Engine,
    context: &Context,
    job: Job<'_>,
    elsewhere: &Elsewhere,
    mut request: Request,
) -> Result<Ended, RunError> {
    let observer = RunObserver::new(engine, context, job);
    request.trace = observer.trace();
    let attempt = Mutex::new(None);
    let ended = {
        let run = run_when_permitted(engine, context, elsewhere, request, &observer, &attempt);
        // The future is large, and every future that awaits it would move it.
        let mut run = Box::pin(run);
        observer.relay_while(run.as_mut()).await
    };
    observer.ended(&ended);
    let (worker, run) = lock(&attempt).take().unwrap_or_default();
    Ok((ended?, Some(KeptAt { worker, run })))
}

async fn run_when_permitted(
    engine: &Engine,
    context: &Context,
    elsewhere: &Elsewhere,
    request: Request,
    observer: &RunObserver<'_>,
    attempt: &Mutex<Option<(String, String)>>,
) -> Result<Outcome, RunError> {
    // The number of processes is the concern of the machine that has them.
    let calls = &engine.admission.calls;
    let permit = calls.acquire(&context.peer.principal, &elsewhere.queue);
    let _permit = permit.await.map_err(|busy| {
        engine.observers.metrics.count_refusal(Rejection::Busy);
        RunError::Busy(busy)
    })?;
    let digest = request.digest.clone();
    let mut on_event = |event: RunEvent<'_>| match event {
        RunEvent::Sent { worker, run } => {
            context.record.set_worker(worker, run, &digest);
            *lock(attempt) = Some((worker.to_owned(), run.to_owned()));
        }
        RunEvent::Lost => context.record.lose_run(),
        RunEvent::Line(line) => observer.line(line),
    };
    let counter = observer.started();
    let ended = match &context.task_run {
        Some(task_run) => task_run.run(&elsewhere.place, request, &mut on_event).await,
        None => elsewhere.place.run(request, &mut on_event).await,
    };
    let ended = ended.map_err(RunError::Elsewhere);
    if let Err(RunError::Elsewhere(NotRun::Busy { .. })) = &ended {
        engine.observers.metrics.count_refusal(Rejection::Busy);
    }
    counter.finish(&ended);
    ended
}

/// Reads the beginning of a kept output at the first of these places that has it.
///
/// # Errors
///
/// [`NotRun::Unknown`] if none has it, or its caller is another.
pub(crate) async fn find_kept(
    places: &[Arc<dyn Place>],
    output: &KeptOutput,
) -> Result<(Arc<dyn Place>, OutputPart), NotRun> {
    for place in places {
        match place.read(output, 0..FIRST_BYTES).await {
            Err(NotRun::Unknown) => {}
            part => return Ok((Arc::clone(place), part?)),
        }
    }
    Err(NotRun::Unknown)
}

/// Reads a kept output that begins with `first`.
///
/// # Errors
///
/// It is not there any more, or cannot be reached.
pub(crate) async fn read_kept(
    place: &dyn Place,
    output: &KeptOutput,
    first: OutputPart,
) -> Result<Vec<u8>, NotRun> {
    let size = first.size.min(MAX_BYTES);
    let mut end = FIRST_BYTES;
    let mut whole = first.bytes;
    if size > end && whole.len() as u64 == end {
        // All in one request: to copy the first part in front of the rest would cost more.
        end = size;
        whole = place.read(output, 0..end).await?.bytes;
    }
    let mut whole = Vec::from(whole);
    // The text for readers may be longer than the kept one.
    while whole.len() as u64 == end && end < MAX_BYTES {
        let start = end;
        end = MAX_BYTES.min(start + MORE_BYTES);
        whole.extend_from_slice(&place.read(output, start..end).await?.bytes);
    }
    Ok(whole)
}
