//! `mcpd endpoint`: one request of an action endpoint from stdin, one answer on stdout. It has no other words for what
//! goes wrong: even a server that does not start is an answer.

use std::io;

use anyhow::Context as _;
use mcpd_protocol::{CallToolRequest, CallToolRequestParams};
use mcpd_server::endpoint::{Answer, Category, Descriptor, Fault, Request};
use mcpd_server::{Server, Tool};
use serde_json::value::RawValue;

use super::{call, with_server};
use crate::args::{Enabling, Endpoint, Logging};
use crate::config::File;
use crate::exit_code::ExitCode;
use crate::{client, config, output};

/// Answers the request.
pub(crate) async fn run(
    args: Endpoint,
    logging: &Logging,
    file: &File,
) -> anyhow::Result<ExitCode> {
    let answered = match request() {
        Ok(request) => serve(args, logging, file, request).await,
        Err(fault) => return print(Err(fault)),
    };
    answered.or_else(|error| refuse(&error))
}

/// Answers that nothing can be answered.
pub(crate) fn refuse(error: &anyhow::Error) -> anyhow::Result<ExitCode> {
    let message = format!("failed to {error:#}");
    print(Err(Fault::new(Category::Fatal, message)))
}

/// The request on stdin, checked before anything is started for it.
fn request() -> Result<Request, Fault> {
    let text = io::read_to_string(io::stdin())
        .map_err(|error| Fault::usage(format!("the request can't be read: {error}")))?;
    Request::read(&text)
}

async fn serve(
    args: Endpoint,
    logging: &Logging,
    file: &File,
    request: Request,
) -> anyhow::Result<ExitCode> {
    let limits = config::limits(&args.limits);
    let mut server = config::asked(
        file,
        args.roots.all(),
        &Enabling::default(),
        &args.scanning,
        &args.confinement,
        limits,
    )
    .await?;
    if let Some(audit) = config::audit(file)? {
        server = server.audit(audit);
    }
    with_server(server, async |server| {
        print(answer(server, logging, request).await)
    })
    .await
}

async fn answer(server: &Server, logging: &Logging, request: Request) -> Result<Answer, Fault> {
    let catalog = server.catalog();
    let find = |name: &str| {
        let missing = || Fault::usage(format!("there is no tool `{}`", name.escape_debug()));
        catalog.tool(name).ok_or_else(missing)
    };
    match request {
        Request::ListTools => {
            let tools = catalog.tools().iter();
            Ok(Answer::tools(
                tools.map(|tool| Descriptor::of(tool)).collect(),
            ))
        }
        Request::DescribeTool { tool, .. } => Ok(Answer::tool(Descriptor::of(find(&tool)?))),
        Request::CallTool {
            tool, arguments, ..
        } => called(server, logging, find(&tool)?, arguments).await,
        _ => Err(Fault::usage("there is no such action")),
    }
}

async fn called(
    server: &Server,
    logging: &Logging,
    tool: &Tool,
    arguments: Box<RawValue>,
) -> Result<Answer, Fault> {
    let name = tool.path().as_str();
    let mut params = CallToolRequestParams::new(name).with_arguments(arguments);
    params.meta = Some(client::envelope(call::log_level(logging)));
    let pipeline = |message| Fault::new(Category::Pipeline, message);
    let result = client::request::<CallToolRequest, _>(server, &params, call::relay)
        .await
        .map_err(|error| pipeline(format!("failed to {error:#}")))?
        .map_err(|error| pipeline(client::words(error).into_owned()))?;
    Answer::called(name, &result)
}

fn print(answer: Result<Answer, Fault>) -> anyhow::Result<ExitCode> {
    let code = match answer {
        Ok(_) => ExitCode::Success,
        Err(_) => ExitCode::Failure,
    };
    let answer = answer.unwrap_or_else(Answer::from);
    let mut line = serde_json::to_vec(&answer).context("encode the answer")?;
    line.push(b'\n');
    output::write(&line)?;
    Ok(code)
}
