//! Authorization code flow with PKCE (RFC 7636), for a token of one resource (RFC 8707), with the
//! check of the issuer against mix-up (RFC 9207) and registration of the client (RFC 7591).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::challenge::Challenge;
use super::client::{AuthClient, shorten};
use super::grant::Grant;
use super::metadata::{Issuer, Resource, find_issuer, find_resource};
use super::redirect::{Fields, Redirect};

/// Time limit for the user to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10 * 60);
const RANDOM_BYTES: usize = 32;

/// One login.
pub(super) struct Flow<'a> {
    pub(super) client: &'a AuthClient,
    pub(super) server: &'a Url,
    pub(super) client_id: Option<&'a str>,
    pub(super) show_page: &'a (dyn Fn(&str) + Send + Sync),
}

/// Client, as the authorization server knows it.
struct Registration {
    id: String,
    secret: Option<String>,
}

impl Flow<'_> {
    /// Logs in, with the scopes that were granted `before` as well.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no token.
    pub(super) async fn log_in(
        &self,
        challenge: &Challenge,
        before: Option<&str>,
    ) -> Result<Grant, String> {
        let resource = find_resource(self.client, self.server, challenge).await?;
        let issuer = resource.authorization_servers.first();
        let issuer = issuer.ok_or("its metadata name no authorization server")?;
        let issuer = find_issuer(self.client, issuer).await?;
        // Checked before anything is opened or sent.
        self.client.check_url(&issuer.token_endpoint)?;
        let page = self.client.check_url(&issuer.authorization_endpoint)?;
        let redirect = Redirect::listen().await;
        let redirect = redirect.map_err(|error| format!("failed to listen: {error}"))?;
        let scope = combine_scopes(challenge, before, &resource);
        let registration = self.register(&issuer, &redirect, scope.as_deref()).await?;
        let (state, verifier) = (random()?, random()?);
        let page = add_request(
            page,
            &registration.id,
            &redirect.url,
            &state,
            &verifier,
            |add| {
                add("resource", &resource.resource);
                if let Some(scope) = &scope {
                    add("scope", scope);
                }
            },
        );
        (self.show_page)(page.as_str());
        let fields = tokio::time::timeout(LOGIN_TIMEOUT, redirect.receive(&state)).await;
        let fields = fields.map_err(|_| "the user has not logged in for 10 minutes")?;
        let fields = fields.map_err(|error| format!("failed to listen: {error}"))?;
        let code = read_code(&issuer, &fields)?;
        let grant = Grant {
            server: self.server.as_str().to_owned(),
            token_endpoint: issuer.token_endpoint,
            client_id: registration.id,
            client_secret: registration.secret,
            resource: resource.resource,
            scope,
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
        };
        self.redeem(grant, code, &redirect.url, &verifier).await
    }

    /// Registers the client, unless it has an id.
    async fn register(
        &self,
        issuer: &Issuer,
        redirect: &Redirect,
        scope: Option<&str>,
    ) -> Result<Registration, String> {
        if let Some(id) = self.client_id {
            return Ok(Registration {
                id: id.to_owned(),
                secret: None,
            });
        }
        let Some(endpoint) = &issuer.registration_endpoint else {
            return Err(format!(
                "`{}` registers no clients; register one there and pass its id with `--client-id`",
                issuer.issuer
            ));
        };
        let endpoint = self.client.check_url(endpoint)?;
        let mut client = json!({
            "client_name": "mcpd connect",
            "redirect_uris": [redirect.url],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        });
        if let Some(scope) = scope {
            client["scope"] = json!(scope);
        }
        let registered = self.client.post_json(&endpoint, &client).await?;
        let text = |name: &str| {
            registered
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        Ok(Registration {
            id: text("client_id").ok_or("the registration has no `client_id`")?,
            secret: text("client_secret"),
        })
    }

    /// Exchanges the code for tokens.
    async fn redeem(
        &self,
        grant: Grant,
        code: &str,
        redirect: &str,
        verifier: &str,
    ) -> Result<Grant, String> {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect),
            ("client_id", &grant.client_id),
            ("code_verifier", verifier),
            ("resource", &grant.resource),
        ];
        fields.extend(
            grant
                .client_secret
                .as_deref()
                .map(|secret| ("client_secret", secret)),
        );
        let tokens = self
            .client
            .request_token(&grant.token_endpoint, &fields)
            .await?;
        Ok(grant.renewed(tokens))
    }
}

/// Adds the parameters of an authorization request to the URL of its page.
fn add_request(
    mut page: Url,
    client_id: &str,
    redirect: &str,
    state: &str,
    verifier: &str,
    add_more: impl FnOnce(&mut dyn FnMut(&str, &str)),
) -> Url {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let mut query = page.query_pairs_mut();
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", client_id)
        .append_pair("redirect_uri", redirect)
        .append_pair("state", state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256");
    add_more(&mut |name, value| {
        query.append_pair(name, value);
    });
    drop(query);
    page
}

/// Returns the scopes to ask for: those of the challenge, or of the metadata, and the ones of the
/// login before.
fn combine_scopes(
    challenge: &Challenge,
    before: Option<&str>,
    resource: &Resource,
) -> Option<String> {
    let supported = resource.scopes_supported.join(" ");
    let asked = challenge.scope.as_deref().unwrap_or(&supported);
    let mut scopes: Vec<&str> = Vec::new();
    let before = before.filter(|_| challenge.is_step_up).unwrap_or_default();
    for scope in before.split_whitespace().chain(asked.split_whitespace()) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    (!scopes.is_empty()).then(|| scopes.join(" "))
}

/// Returns the code in the parameters of the redirect.
fn read_code<'a>(issuer: &Issuer, fields: &'a Fields) -> Result<&'a str, String> {
    // "Clients MUST then compare the result to the issuer identifier" -- RFC 9207, section 2.4. An
    // error of another issuer counts no more than its code.
    let is_right = match fields.get("iss") {
        Some(named) => *named == issuer.issuer,
        None => !issuer.names_itself,
    };
    if !is_right {
        return Err("the redirect comes from another issuer".to_owned());
    }
    if let Some(error) = fields.get("error") {
        let description = fields.get("error_description");
        let description = description.map(|words| format!(": {}", shorten(words)));
        let error = shorten(error);
        return Err(format!(
            "the login was refused: {error}{}",
            description.unwrap_or_default()
        ));
    }
    let code = fields.get("code").map(String::as_str);
    code.ok_or_else(|| "the redirect has no code".to_owned())
}

/// Returns 256 random bits as text.
fn random() -> Result<String, String> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| format!("failed to get random bytes: {error}"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(names_itself: bool) -> Issuer {
        let issuer = json!({
            "issuer": "https://auth.example",
            "authorization_endpoint": "https://auth.example/a",
            "token_endpoint": "https://auth.example/t",
            "authorization_response_iss_parameter_supported": names_itself,
        });
        serde_json::from_value(issuer).unwrap()
    }

    #[track_caller]
    fn check(names_itself: bool, fields: &[(&str, &str)], expected: Result<&str, &str>) {
        let fields = fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let fields: Fields = fields.collect();
        let code = read_code(&issuer(names_itself), &fields);
        assert_eq!(
            code.as_deref().map_err(String::as_str),
            expected
                .as_ref()
                .map(|code| &**code)
                .map_err(|error| &**error)
        );
    }

    #[test]
    fn redirect_of_another_issuer_is_refused() {
        let mixed_up = Err("the redirect comes from another issuer");
        let right = ("iss", "https://auth.example");
        check(false, &[("code", "1")], Ok("1"));
        check(true, &[("code", "1")], mixed_up);
        check(true, &[("code", "1"), right], Ok("1"));
        check(false, &[("code", "1"), right], Ok("1"));
        check(
            false,
            &[("code", "1"), ("iss", "https://evil.example")],
            mixed_up,
        );
        check(true, &[("error", "access_denied")], mixed_up);
        check(
            false,
            &[
                ("error", "access_denied"),
                ("error_description", "no\u{1b}[2J"),
            ],
            Err("the login was refused: access_denied: no\\u{1b}[2J"),
        );
        check(false, &[], Err("the redirect has no code"));
    }

    #[test]
    fn scopes_of_a_step_up_are_added() {
        let resource: Resource = serde_json::from_value(json!({
            "resource": "https://tools.example/mcp",
            "scopes_supported": ["a", "b"],
        }))
        .unwrap();
        let combine = |scope: Option<&str>, is_step_up, before| {
            let challenge = Challenge {
                scope: scope.map(str::to_owned),
                is_step_up,
                ..Challenge::default()
            };
            combine_scopes(&challenge, before, &resource)
        };
        assert_eq!(combine(None, false, None).as_deref(), Some("a b"));
        assert_eq!(combine(Some("c"), false, Some("x")).as_deref(), Some("c"));
        assert_eq!(
            combine(Some("c x"), true, Some("x y")).as_deref(),
            Some("x y c")
        );
    }
}
