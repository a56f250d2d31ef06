//! OAuth login of the client: tokens that are stored, refreshed before they expire, and obtained
//! from the authorization server that the MCP server names.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::HeaderValue;
use reqwest::{Response, Url};
use tokio::sync::Mutex;

pub(crate) use self::challenge::Challenge;
use self::client::AuthClient;
use self::flow::Flow;
use self::grant::Grant;
use self::store::Store;
use crate::Error;
use crate::target::Target;

mod challenge;
mod client;
mod flow;
mod grant;
mod metadata;
mod redirect;
mod store;

/// Time before its expiry at which a token is refreshed.
const REFRESH_MARGIN: Duration = Duration::from_secs(60);
/// Time after a login within which the server must accept its token. A server that never does would
/// open one page after the other.
const LOGIN_INTERVAL: Duration = Duration::from_secs(60);

/// Settings of OAuth logins.
#[derive(Clone)]
pub struct Login {
    directory: PathBuf,
    client_id: Option<String>,
    show_page: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Login {
    /// Stores tokens in `directory`, in files that only their owner can read. `show_page` gets the
    /// URL where the user logs in: `http` or `https`, without spaces and control characters.
    pub fn new(directory: &Path, show_page: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            directory: directory.to_owned(),
            client_id: None,
            show_page: Arc::new(show_page),
        }
    }

    /// Sets the client id that the authorization server knows. Without it, the client registers
    /// itself.
    #[must_use]
    pub fn client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("directory", &self.directory)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// Removes the stored logins at a server. Returns their number.
///
/// # Errors
///
/// Fails if `url` is no URL of a server, or the file system refuses.
pub fn log_out(directory: &Path, url: &str) -> Result<usize, Error> {
    let target = Target::new(url)?;
    store::remove(directory, &target.url).map_err(|source| Error::Store {
        directory: directory.display().to_string(),
        source,
    })
}

/// Token of the client at one server.
#[derive(Debug)]
pub(crate) struct Authorizer {
    login: Login,
    server: Url,
    place: String,
    /// Tokens may be sent to the server: it is on this machine, or the connection is encrypted.
    is_confidential: bool,
    store: Store,
    client: AuthClient,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_loaded: bool,
    grant: Option<Grant>,
    last_login: Option<Instant>,
}

impl State {
    fn header(&self) -> Option<HeaderValue> {
        self.grant.as_ref().and_then(Grant::header)
    }
}

impl Authorizer {
    pub(crate) fn new(login: Login, target: &Target) -> Self {
        let store = Store::new(&login.directory, &target.url, login.client_id.as_deref());
        Self {
            login,
            server: target.url.clone(),
            place: target.place(),
            is_confidential: target.is_confidential(),
            store,
            client: AuthClient::new(target.is_local()),
            state: Mutex::default(),
        }
    }

    /// Returns the token, refreshed if it is about to expire. Waits while a login is in progress.
    pub(crate) async fn token(&self) -> Option<HeaderValue> {
        if !self.is_confidential {
            return None;
        }
        let mut state = self.state.lock().await;
        if !state.is_loaded {
            state.is_loaded = true;
            state.grant = self.store.load();
        }
        let is_expiring = state
            .grant
            .as_ref()
            .is_some_and(|grant| grant.expires_within(REFRESH_MARGIN));
        if is_expiring && let Err(reason) = self.refresh(&mut state).await {
            // The server decides whether the old one is still good.
            tracing::info!("the token for `{}` was not refreshed: {reason}", self.place);
        }
        state.header()
    }

    /// Returns the token as it is.
    pub(crate) async fn current_token(&self) -> Option<HeaderValue> {
        self.state.lock().await.header()
    }

    /// Obtains another token than `used`, which the server has refused: a refreshed one at the
    /// first `attempt`, and else that of a new login.
    pub(crate) async fn authorize(
        &self,
        challenge: &Challenge,
        used: Option<&HeaderValue>,
        attempt: usize,
    ) -> Result<(), Error> {
        if !self.is_confidential {
            return Err(Error::Plaintext(self.place.clone()));
        }
        let mut state = self.state.lock().await;
        if state.header().as_ref() != used {
            return Ok(());
        }
        // Another process may have logged in meanwhile.
        let stored = self.store.load();
        if let Some(grant) = stored.filter(|grant| grant.header().as_ref() != used) {
            state.grant = Some(grant);
            return Ok(());
        }
        let can_refresh = attempt == 0 && !challenge.is_step_up;
        if can_refresh
            && self
                .refresh(&mut state)
                .await
                .is_ok_and(|refreshed| refreshed)
        {
            return Ok(());
        }
        self.log_in(&mut state, challenge).await
    }

    /// Logs in if the server has refused a request without a token. Returns whether it did.
    pub(crate) async fn log_in_if_asked(&self, response: &Response) -> Result<bool, Error> {
        let Some(challenge) = Challenge::of(response) else {
            return Ok(false);
        };
        if !self.is_confidential {
            return Err(Error::Plaintext(self.place.clone()));
        }
        let mut state = self.state.lock().await;
        self.log_in(&mut state, &challenge).await?;
        Ok(true)
    }

    async fn log_in(&self, state: &mut State, challenge: &Challenge) -> Result<(), Error> {
        self.check_repetition(state, challenge)?;
        let flow = Flow {
            client: &self.client,
            server: &self.server,
            client_id: self.login.client_id.as_deref(),
            show_page: &*self.login.show_page,
        };
        let before = state.grant.as_ref().and_then(|grant| grant.scope.clone());
        let grant = flow.log_in(challenge, before.as_deref()).await;
        let grant = grant.map_err(|reason| Error::Login {
            place: self.place.clone(),
            reason,
        })?;
        tracing::info!("logged in at `{}`", self.place);
        state.last_login = Some(Instant::now());
        self.keep(state, grant);
        Ok(())
    }

    /// Checks that another login may help.
    fn check_repetition(&self, state: &State, challenge: &Challenge) -> Result<(), Error> {
        let granted = state
            .grant
            .as_ref()
            .and_then(|grant| grant.scope.as_deref());
        let granted: Vec<_> = granted.unwrap_or_default().split_whitespace().collect();
        let wanted = challenge.scope.as_deref().unwrap_or_default();
        let is_recent = state
            .last_login
            .is_some_and(|login| login.elapsed() < LOGIN_INTERVAL);
        let has_all = wanted
            .split_whitespace()
            .all(|scope| granted.contains(&scope));
        let reason = match (challenge.is_step_up, is_recent) {
            (true, _) if has_all => "the server wants scopes that the token already has",
            (false, true) => "the server refuses the token of the last login; try again later",
            _ => return Ok(()),
        };
        Err(Error::Login {
            place: self.place.clone(),
            reason: reason.to_owned(),
        })
    }

    /// Refreshes the token. Returns whether there was a way to.
    async fn refresh(&self, state: &mut State) -> Result<bool, String> {
        let Some(grant) = &state.grant else {
            return Ok(false);
        };
        let Some(fields) = grant.refresh_fields() else {
            return Ok(false);
        };
        let refreshed = match self
            .client
            .request_token(&grant.token_endpoint, &fields)
            .await
        {
            Ok(tokens) => grant.renewed(tokens),
            Err(reason) => {
                // Another process may have used the refresh token, which is good only once.
                let stored = self.store.load();
                let is_newer = |stored: &Grant| stored.access_token != grant.access_token;
                stored.filter(is_newer).ok_or(reason)?
            }
        };
        self.keep(state, refreshed);
        Ok(true)
    }

    fn keep(&self, state: &mut State, grant: Grant) {
        if let Err(error) = self.store.save(&grant) {
            tracing::warn!("the login is lost at the end of this process: {error}");
        }
        state.grant = Some(grant);
    }
}
