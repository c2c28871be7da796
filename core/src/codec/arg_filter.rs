//! Leaving out those of a user's arguments that would break the protocol with the agent.

use super::options::Args;

/// What follows a flag that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// A value, in the next argument unless it is joined with `=`.
    Value,
    /// Nothing.
    Standalone,
    /// Perhaps a value: the next argument if it does not look like a flag.
    OptionalValue,
}

/// A flag that users may not set.
pub type Blocked = (&'static str, FlagKind);

/// Adds those of `args` to `to` that are not `blocked`, each freed of one layer of shell quotes; what is left out, and
/// every argument with a NUL in it, is named in the warnings.
pub fn add_allowed(to: &mut Args, args: &[String], blocked: &[Blocked]) {
    add(to, args, blocked, |_| true);
}

/// The same for what comes before all other arguments, where a word that is no flag, such as the name of a subcommand, always stays.
pub fn add_prefix(to: &mut Args, args: &[String], blocked: &[Blocked]) {
    add(to, args, blocked, |arg| arg.starts_with('-') && arg != "-" && arg != "--");
}

fn add(to: &mut Args, args: &[String], blocked: &[Blocked], may_be_blocked: fn(&str) -> bool) {
    let mut args = args.iter().map(|arg| unquoted(arg)).peekable();
    while let Some(arg) = args.next() {
        let (flag, joined) = match arg.split_once('=') {
            Some((flag, _)) if !flag.is_empty() => (flag, true),
            _ => (arg.as_str(), false),
        };
        let blocked = blocked.iter().find(|(name, _)| *name == flag && may_be_blocked(&arg));
        if let Some((name, kind)) = blocked {
            let takes_next = !joined
                && match kind {
                    FlagKind::Value => true,
                    FlagKind::Standalone => false,
                    FlagKind::OptionalValue => args.peek().is_some_and(|next| !next.starts_with('-')),
                };
            if takes_next {
                args.next();
            }
            to.warnings.push(format!("argument {name} was left out: longshore sets it itself"));
        } else if arg.contains('\0') {
            to.warnings.push("an argument was left out: it has a NUL character in it".to_owned());
        } else {
            to.args.push(arg);
        }
    }
}

/// `token` without one layer of quotes: those around the value of `-flag='value'`, or around the whole.
fn unquoted(token: &str) -> String {
    if token.starts_with('-')
        && let Some((flag, value)) = token.split_once('=')
    {
        return format!("{flag}={}", without_quotes(value));
    }
    without_quotes(token).to_owned()
}

fn without_quotes(text: &str) -> &str {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKED: &[Blocked] =
        &[("--value", FlagKind::Value), ("-s", FlagKind::Standalone), ("--maybe", FlagKind::OptionalValue)];

    fn allowed(args: &[&str]) -> Args {
        let mut to = Args::default();
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        add_allowed(&mut to, &args, BLOCKED);
        to
    }

    #[test]
    fn inv_agents_26_5_a_blocked_flag_takes_its_value_along() {
        assert_eq!(allowed(&["a", "--value", "-x", "b"]).args, ["a", "b"]);
        assert_eq!(allowed(&["--value=x", "b"]).args, ["b"]);
        assert_eq!(allowed(&["-s", "b"]).args, ["b"]);
        assert_eq!(allowed(&["--maybe", "x", "b"]).args, ["b"]);
        assert_eq!(allowed(&["--maybe", "-x", "b"]).args, ["-x", "b"]);
        assert_eq!(allowed(&["--maybe"]).args, [""; 0]);
        assert_eq!(allowed(&["b", "--value"]).args, ["b"]);
        assert_eq!(allowed(&["'--value'", "x"]).args, [""; 0]);
    }

    #[test]
    fn inv_agents_26_6_one_layer_of_quotes_is_taken_off() {
        let args = ["--x='v'", r#"model="o3""#, "'tok'", "\"", "'a", "-=\"q\"", "''b''"];
        assert_eq!(allowed(&args).args, ["--x=v", r#"model="o3""#, "tok", "\"", "'a", "-=q", "'b'"]);
    }

    #[test]
    fn inv_agents_26_7_a_prefix_keeps_words_that_are_no_flags() {
        const WORDS: &[Blocked] = &[("acp", FlagKind::Standalone), ("--acp", FlagKind::Standalone)];
        let args: Vec<String> = ["acp", "--acp", "--", "-"].map(String::from).into();
        let mut to = Args::default();
        add_prefix(&mut to, &args, WORDS);
        assert_eq!(to.args, ["acp", "--", "-"]);
        let mut to = Args::default();
        add_allowed(&mut to, &args, WORDS);
        assert_eq!(to.args, ["--", "-"]);
    }

    #[test]
    fn warnings_name_the_flag_and_never_the_value() {
        let args = allowed(&["--value=secret", "bad\0arg"]);
        assert_eq!(args.args, [""; 0]);
        assert_eq!(args.warnings.len(), 2);
        assert!(args.warnings[0].contains("--value") && !args.warnings.concat().contains("secret"));
    }
}
