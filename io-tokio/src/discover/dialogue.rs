//! Asks a program for more than its version: for all that it prints, or with questions and answers, one a line. Within bounds of time and size,
//! and no process is left behind.

use super::capture::{CaptureError, Group, leader_end};
use crate::config::Env;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout_at};

/// What is kept of each output; the rest is read and thrown away.
pub(crate) const MAX_SAID: usize = 4 << 20;
/// What is kept of standard error.
const MAX_ERROR: usize = 64 << 10;
/// Once the program has ended, its output may come this much later, through processes that it left behind.
const PIPE_GRACE: Duration = Duration::from_secs(2);

/// A program that is asked something.
pub(crate) struct Dialogue<'a> {
    pub program: &'a Path,
    pub args: &'a [&'a OsStr],
    pub env: &'a Env,
    /// Where it starts; where the daemon is if there is none.
    pub cwd: Option<&'a Path>,
    pub limit: Duration,
}

/// What it printed until its end, invalid UTF-8 replaced.
#[derive(Debug)]
pub(crate) struct Said {
    pub stdout: String,
    pub stderr: String,
    pub status: ExitStatus,
}

/// What comes after a line of the program.
pub(crate) enum Next<T> {
    /// Another one.
    Wait,
    /// These lines go to it.
    Say(Vec<String>),
    /// Nothing: this is the answer.
    Done(T),
}

impl Dialogue<'_> {
    fn spawn(&self, stdin: Stdio) -> Result<(Child, Group), CaptureError> {
        let mut command = Command::new(self.program);
        command.args(self.args).env_clear().envs(self.env.iter()).kill_on_drop(true).process_group(0);
        if let Some(cwd) = self.cwd {
            command.current_dir(cwd);
        }
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(CaptureError::Start)?;
        let group = Group::led_by(&child);
        Ok((child, group))
    }

    /// Lets it print all that it has to say; its input is empty.
    pub(crate) async fn listen(&self) -> Result<Said, CaptureError> {
        let (mut child, mut group) = self.spawn(Stdio::null())?;
        let deadline = Instant::now() + self.limit;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let listened = {
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let read = async {
                tokio::join!(drain(stdout, &mut out, MAX_SAID), drain(stderr, &mut err, MAX_ERROR));
            };
            timeout_at(deadline, async {
                tokio::pin!(read);
                tokio::select! {
                    () = &mut read => leader_end(group.leader()).await,
                    ended = leader_end(group.leader()) => {
                        // Whatever else keeps the pipes open is not waited for.
                        let _ = timeout_at(Instant::now() + PIPE_GRACE, read).await;
                        ended
                    }
                }
            })
            .await
        };
        group.kill();
        let status = child.wait().await.map_err(CaptureError::Watch)?;
        listened.map_err(|_| CaptureError::TimedOut(self.limit))?.map_err(CaptureError::Watch)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Said { stdout: text(&out), stderr: text(&err), status })
    }

    /// Says `first` to it and reads its lines until one of them is the answer. `None` if it ends before. A line that is too long to be kept is
    /// no line.
    pub(crate) async fn ask<T>(
        &self,
        first: Vec<String>,
        mut heard: impl FnMut(&str) -> Next<T> + Send,
    ) -> Result<Option<T>, CaptureError> {
        let (mut child, mut group) = self.spawn(Stdio::piped())?;
        let deadline = Instant::now() + self.limit;
        let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut nothing = Vec::new();
        let noise = drain(child.stderr.take(), &mut nothing, 0);
        let talked = async {
            say(&mut stdin, &first).await;
            let Some(stdout) = stdout else { return Ok(None) };
            let mut lines = BufReader::new(stdout);
            let mut total = 0;
            while let Some(line) = next_line(&mut lines).await? {
                total += line.len();
                match heard(&line) {
                    Next::Done(answer) => return Ok(Some(answer)),
                    Next::Say(more) => say(&mut stdin, &more).await,
                    Next::Wait => {}
                }
                if total > MAX_SAID {
                    break;
                }
            }
            Ok(None)
        };
        let answer = timeout_at(deadline, async {
            tokio::pin!(talked, noise);
            tokio::select! {
                answer = &mut talked => answer,
                () = &mut noise => talked.await,
            }
        })
        .await;
        group.kill();
        child.wait().await.map_err(CaptureError::Watch)?;
        answer.map_err(|_| CaptureError::TimedOut(self.limit))?.map_err(CaptureError::Watch)
    }
}

/// Lines for the program; one that does not read them is told by what it does not answer.
async fn say(stdin: &mut Option<tokio::process::ChildStdin>, lines: &[String]) {
    let Some(pipe) = stdin else { return };
    for line in lines {
        let text = format!("{line}\n");
        if pipe.write_all(text.as_bytes()).await.is_err() {
            *stdin = None;
            return;
        }
    }
    let _ = pipe.flush().await;
}

async fn drain(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>, most: usize) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 8192];
    while let Ok(n @ 1..) = pipe.read(&mut buffer).await {
        let room = most - kept.len();
        kept.extend_from_slice(&buffer[..n.min(room)]);
    }
}

/// The next line, without its end; `None` at the end of the output.
async fn next_line(lines: &mut BufReader<impl AsyncRead + Unpin>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let most = MAX_SAID as u64;
    if (&mut *lines).take(most).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    while line.len() as u64 == most && !line.ends_with(b"\n") {
        let mut rest = Vec::new();
        if (&mut *lines).take(most).read_until(b'\n', &mut rest).await? == 0 || rest.ends_with(b"\n") {
            line.clear();
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit_ms: u64) -> (Vec<String>, Env, Duration) {
        let env = Env::from_pairs([("PATH", "/usr/bin:/bin")]);
        (vec!["-c".to_owned(), script.to_owned()], env, Duration::from_millis(limit_ms))
    }

    macro_rules! dialogue {
        ($script:expr, $limit:expr, $with:ident => $do:expr) => {{
            let (args, env, limit) = sh($script, $limit);
            let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
            let $with = Dialogue { program: Path::new("/bin/sh"), args: &args, env: &env, cwd: None, limit };
            $do
        }};
    }

    #[tokio::test]
    async fn both_outputs_and_the_status_are_told() {
        let said = dialogue!("echo out; echo err >&2; exit 3", 20_000, d => d.listen().await).expect("said");
        assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(said.status.code(), Some(3));
    }

    #[tokio::test]
    async fn questions_and_answers_alternate_and_nothing_is_left() {
        let script = "read a; echo \"got $a\"; read b; echo \"and $b\"; sleep 600 & wait";
        let answer = dialogue!(script, 20_000, d => d.ask(vec!["one".into()], |line| match line {
            "got one" => Next::Say(vec!["two".into()]),
            other => Next::Done(other.to_owned()),
        }).await)
        .expect("talked");
        assert_eq!(answer.as_deref(), Some("and two"));
    }

    #[tokio::test]
    async fn a_program_that_ends_or_hangs_has_no_answer() {
        let ends =
            dialogue!("read a; echo no", 20_000, d => d.ask(vec!["x".into()], |_| Next::<()>::Wait).await);
        assert!(matches!(ends, Ok(None)), "{ends:?}");
        let hangs = dialogue!("sleep 600", 300, d => d.ask(Vec::new(), |_| Next::<()>::Wait).await);
        assert!(matches!(hangs, Err(CaptureError::TimedOut(_))), "{hangs:?}");
        let listened = dialogue!("sleep 600", 300, d => d.listen().await);
        assert!(matches!(listened, Err(CaptureError::TimedOut(_))), "{listened:?}");
    }

    #[tokio::test]
    async fn output_without_end_is_bounded() {
        let script = "head -c 9000000 /dev/zero | tr '\\0' x";
        let said = dialogue!(script, 60_000, d => d.listen().await).expect("said");
        assert_eq!(said.stdout.len(), MAX_SAID);
        let asked = dialogue!(script, 60_000, d => d.ask(Vec::new(), |line| {
            assert!(line.is_empty(), "a line that is too long is none");
            Next::<()>::Wait
        }).await);
        assert!(matches!(asked, Ok(None)), "{asked:?}");
    }
}
