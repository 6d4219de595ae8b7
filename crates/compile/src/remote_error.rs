//! Why a remote-execution service has no outcome of an action.

/// Why an action has no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The user asked to stop.
    #[error("failed to finish: interrupted")]
    Interrupted,
    /// The command did not end within its time limit.
    #[error("failed to run `{0}` within its time limit")]
    TimedOut(String),
    /// Only cached outcomes were asked for, and the service has none.
    #[error("failed to find `{0}` among what the service has")]
    NotCached(String),
    /// The service can never run this action; it may run others.
    #[error("failed to run `{name}` remotely: {reason}")]
    Lost {
        /// The kernel.
        name: String,
        /// The service's message.
        reason: String,
    },
    /// The service can't be used.
    #[error("failed to use `{service}`: {reason}")]
    Service {
        /// Its address.
        service: String,
        /// What is wrong.
        reason: String,
        /// What the user can do about it.
        hint: String,
    },
}
