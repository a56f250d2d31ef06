//! `mcpd endpoint`: one request of an action endpoint from stdin, one answer on stdout. The answer
//! is the only report of errors: even a server that does not start is an answer.

use std::io;

use anyhow::Context as _;
use mcpd_config::File;
use mcpd_protocol::method::{CallToolRequest, CallToolRequestParams, CallToolResult};
use mcpd_server::endpoint::{Answer, Category, Descriptor, Fault, Request};
use mcpd_server::{Principal, Server};

use super::{call, with_server};
use crate::args::{Enabling, Endpoint, Logging};
use crate::exit_code::ExitCode;
use crate::{client, output};

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

/// Answers with an error that precedes the server.
pub(crate) fn refuse(error: &anyhow::Error) -> anyhow::Result<ExitCode> {
    let message = format!("failed to {error:#}");
    print(Err(Fault::new(Category::Fatal, message)))
}

/// Reads and checks the request on stdin, before anything is started for it.
fn request() -> Result<Request, Fault> {
    let text = io::read_to_string(io::stdin())
        .map_err(|error| Fault::usage(format!("failed to read the request: {error}")))?;
    Request::read(&text)
}

async fn serve(
    args: Endpoint,
    logging: &Logging,
    file: &File,
    request: Request,
) -> anyhow::Result<ExitCode> {
    let principal = mcpd_config::local_client(file)?;
    let limits = mcpd_config::limits(&args.limits);
    let mut server = mcpd_config::server_for_query(
        file,
        args.roots.all(),
        &Enabling::default(),
        &args.scanning,
        &args.confinement,
        limits,
    )
    .await?;
    if let Some(audit) = mcpd_config::audit(file)? {
        server = server.audit(audit);
    }
    with_server(server, async |server| {
        print(answer(server, principal, logging, request).await)
    })
    .await
}

async fn answer(
    server: &Server,
    principal: Principal,
    logging: &Logging,
    request: Request,
) -> Result<Answer, Fault> {
    let catalog = server.catalog_for(&principal);
    match request {
        Request::ListTools => {
            let tools = catalog.tools().iter();
            Ok(Answer::tools(
                tools.map(|tool| Descriptor::of(tool)).collect(),
            ))
        }
        Request::DescribeTool { tool, .. } => match catalog.tool(&tool) {
            Some(tool) => Ok(Answer::tool(Descriptor::of(tool))),
            None => Err(unknown_tool(&tool)),
        },
        Request::CallTool {
            tool, arguments, ..
        } => {
            let path = catalog.tool(&tool).map(|tool| tool.path().as_str());
            let mut params = CallToolRequestParams::new(&*tool).with_arguments(arguments);
            params.meta = Some(client::envelope(call::log_level(logging)));
            // An unknown tool is called as well, so that the request for it is recorded.
            let called = call_tool(server, principal, &params).await;
            let path = path.ok_or_else(|| unknown_tool(&tool))?;
            Answer::call_result(path, &called?)
        }
        _ => Err(Fault::usage("unknown action")),
    }
}

async fn call_tool(
    server: &Server,
    principal: Principal,
    params: &CallToolRequestParams,
) -> Result<CallToolResult, Fault> {
    let pipeline = |message| Fault::new(Category::Pipeline, message);
    client::request::<CallToolRequest, _>(server, principal, params, call::relay)
        .await
        .map_err(|error| pipeline(format!("failed to {error:#}")))?
        .map_err(|error| pipeline(client::error_text(error).into_owned()))
}

fn unknown_tool(tool: &str) -> Fault {
    Fault::usage(format!("there is no tool `{}`", tool.escape_debug()))
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
