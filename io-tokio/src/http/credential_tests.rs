use super::*;
use crate::config::{Env, Flags, Settings};
use crate::http::test_server::{TestServer, read_request, reply};
use std::path::Path;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

/// A client's credential that follows a config file with the token `mul_first`.
struct Place {
    home: tempfile::TempDir,
    credential: Credential,
    redactor: Redactor,
}

impl Place {
    fn new() -> Self {
        Self::of(Credential::new(&Secret::new("mul_first")).expect("a token"))
    }

    fn of(credential: Credential) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(home.path().join(".multica")).expect("a directory");
        let place = Self { home, credential, redactor: Redactor::default() };
        place.write(r#"{"token":"mul_first"}"#);
        let env = Env::from_pairs([("HOME", place.home.path())]);
        let settings = Settings::load(&Flags::default(), &env, Path::new("/")).expect("settings");
        place.credential.follow(settings.token_file.expect("it is from a file"), place.redactor.clone());
        place
    }

    fn write(&self, json: &str) {
        std::fs::write(self.home.path().join(".multica/config.json"), json).expect("written");
    }

    fn token(&self) -> String {
        self.credential.header().to_str().expect("text").to_owned()
    }
}

const WITHIN: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_refused_token_is_replaced_by_the_one_that_is_written_into_its_file() {
    let place = Place::new();
    let mut replaced = place.credential.replaced();
    place.credential.answered(0, 401, None);
    place.write(r#"{"token":"second-token-without-prefix"}"#);
    tokio::time::timeout(WITHIN, replaced.next()).await.expect("it is seen");
    assert_eq!(
        (place.token().as_str(), place.credential.number()),
        ("Bearer second-token-without-prefix", 1)
    );
    assert_eq!(
        place.redactor.redact("second-token-without-prefix"),
        "[REDACTED]",
        "it is kept out of the log"
    );
    assert!(!place.credential.0.against.borrow().refused, "nothing is known against the new one");
    place.credential.answered(0, 401, None);
    assert!(!place.credential.0.against.borrow().refused, "a late answer is about the old one");
}

#[tokio::test]
async fn without_a_refusal_the_file_is_looked_at_when_somebody_asks() {
    let place = Place::new();
    place.write(r#"{"token":"mul_second"}"#);
    place.credential.answered(0, 200, None);
    place.credential.answered(0, 503, None);
    assert_eq!(place.token(), "Bearer mul_first");
    place.credential.look().await;
    assert_eq!(place.token(), "Bearer mul_second");
}

#[tokio::test]
async fn a_renewal_is_for_the_token_that_is_in_the_file_by_then() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = TestServer::start(move |mut stream, _| {
        let tell = tell.clone();
        async move {
            while let Some(request) = read_request(&mut stream).await {
                tell.send(request.header("authorization").map(str::to_owned)).expect("the test listens");
                stream.write_all(&reply(200, "", r#"{"renewed":false}"#)).await.expect("written");
            }
        }
    })
    .await;
    let client = server.client();
    let place = Place::of(client.credential().clone());
    for json in [r#"{"token":"mul_first"}"#, r#"{"token":"mul_second"}"#] {
        place.write(json);
        client.renew_token(WITHIN).await.expect("renewed");
    }
    let first = format!("Bearer {}", crate::http::test_server::TOKEN);
    assert_eq!(
        told.recv().await.expect("a renewal"),
        Some(first),
        "at the start the file has just been read"
    );
    assert_eq!(told.recv().await.expect("a renewal").as_deref(), Some("Bearer mul_second"));
}

#[tokio::test]
async fn a_file_that_names_no_usable_token_changes_nothing() {
    let place = Place::new();
    for json in [
        "{}",
        r#"{"token":""}"#,
        r#"{"token":7}"#,
        r#"{"token":"no good"}"#,
        r#"{"token":"mul_x","server_url":"http://other"}"#,
        "[]",
    ] {
        place.write(json);
        place.credential.look().await;
        assert_eq!((place.token().as_str(), place.credential.number()), ("Bearer mul_first", 0), "{json}");
    }
    place.write(r#"{"token":"mul_second"}"#);
    place.credential.look().await;
    assert_eq!(place.token(), "Bearer mul_second");
}

#[tokio::test]
async fn a_token_that_is_not_from_a_file_stays() {
    let credential = Credential::new(&Secret::new("mul_first")).expect("a token");
    credential.answered(0, 401, None);
    credential.look().await;
    assert_eq!(credential.number(), 0);
    assert!(!credential.replace(&Secret::new("mul_first")).expect("a token"), "it is the same");
}
