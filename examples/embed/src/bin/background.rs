//! The same without an async runtime: a server over HTTP on a thread of its own, as long as the program wants it.

use std::time::Duration;

use mcpd_server::transport::http::{Auth, Background, Options, Token};
use mcpd_server::{Error, Principal, Server};

fn main() -> Result<(), Error> {
    let scripts = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "examples/scripts".to_owned());
    let auth = Auth::tokens([Token::new("a secret of yours", Principal::new("me"))]);
    let server = Server::builder().scripts(scripts);
    let server = Background::start(server, "127.0.0.1:0", Options::new(auth))?;
    println!("http://{}/mcp, until you press Enter", server.address());
    std::io::stdin().read_line(&mut String::new()).ok();
    server.stop(Duration::from_secs(5))
}
