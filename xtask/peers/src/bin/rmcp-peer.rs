//! Server on rmcp, the official Rust SDK, set up for speed: no sessions, JSON answers, pipes for
//! stdio.
//!
//! `rmcp-peer stdio|http SCRIPTS TOOLS` has the tools `greet` and `blob`, which run the script of
//! that name, `echo`, and as many more like `greet` as bring the total to TOOLS.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use hyper_util::service::TowerToHyperService;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// Text to return.
    text: String,
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Greet {
    /// Name to greet.
    name: String,
}

/// Service of one request, hence without copies of the tools.
#[derive(Debug, Clone, Copy)]
struct Peer {
    scripts: &'static Path,
    router: &'static ToolRouter<Self>,
}

#[tool_router]
impl Peer {
    fn new(scripts: String, tools: usize) -> Self {
        let mut router = Self::tool_router();
        let greet = router.map["greet"].clone();
        for number in router.map.len()..tools {
            let mut route = greet.clone();
            route.attr.name = format!("greet{number}").into();
            router.add_route(route);
        }
        Self {
            scripts: Path::new(scripts.leak()),
            router: Box::leak(Box::new(router)),
        }
    }

    #[tool(description = "Returns its text.")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::text(text)])
    }

    #[tool(description = "Greets someone by name.")]
    async fn greet(
        &self,
        Parameters(options): Parameters<Greet>,
    ) -> Result<CallToolResult, ErrorData> {
        let input = serde_json::to_vec(&options).map_err(failed)?;
        self.run("greet", Some(("MCPD_OPT_name", options.name)), input)
            .await
    }

    #[tool(description = "Prints much.")]
    async fn blob(&self) -> Result<CallToolResult, ErrorData> {
        self.run("blob", None, b"{}".to_vec()).await
    }

    async fn run(
        &self,
        script: &str,
        option: Option<(&str, String)>,
        input: Vec<u8>,
    ) -> Result<CallToolResult, ErrorData> {
        let mut child = Command::new(self.scripts.join(script))
            .envs(option)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        if let Some(mut pipe) = child.stdin.take() {
            // A script need not read its input.
            pipe.write_all(&input).await.ok();
        }
        let output = child.wait_with_output().await.map_err(failed)?;
        let content = vec![ContentBlock::text(String::from_utf8_lossy(&output.stdout))];
        Ok(if output.status.success() {
            CallToolResult::success(content)
        } else {
            CallToolResult::error(content)
        })
    }
}

fn failed(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[tool_handler(router = self.router)]
impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(transport), Some(scripts), Some(tools)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        bail!("usage: rmcp-peer stdio|http SCRIPTS TOOLS");
    };
    let peer = Peer::new(scripts, tools.parse().context("a number of tools")?);
    match transport.as_str() {
        "stdio" => {
            let service = peer.serve(rmcp::transport::io::stdio_pipes()).await?;
            service.waiting().await?;
        }
        _ => {
            let config = StreamableHttpServerConfig::default()
                .with_legacy_session_mode(false)
                .with_json_response(true);
            let service = StreamableHttpService::new(
                move || Ok(peer),
                LocalSessionManager::default().into(),
                config,
            );
            mcpd_peers::serve(TowerToHyperService::new(service)).await?;
        }
    }
    Ok(())
}
