//! The address of a service: `grpc://HOST:PORT/INSTANCE`.

use std::fmt;
use std::str::FromStr;

use gfxpack_model::Error;

/// The address of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// `http` or `https`, with host and port.
    pub(crate) uri: String,
    /// Whether the connection is encrypted.
    pub(crate) tls: bool,
    /// The instance on the server, which keeps instances separate; may be empty.
    pub(crate) instance: String,
    text: String,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |reason| format!("it is no address of a service: {reason}");
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| wrong("grpc:// or grpcs:// is missing"))?;
        let tls = match scheme {
            "grpc" => false,
            "grpcs" => true,
            _ => return Err(wrong("only grpc:// and grpcs:// are known")),
        };
        let (host, instance) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"?#@\\\"<>".contains(&byte);
        if host.is_empty() || !host.bytes().all(plain) {
            return Err(wrong("the host is missing, or has letters that no host has"));
        }
        let port = host.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
        if port.is_some_and(|(_, port)| port.parse::<u16>().is_err()) {
            return Err(wrong("the port is no number"));
        }
        let http = if tls { "https" } else { "http" };
        Ok(Self {
            uri: format!("{http}://{host}"),
            tls,
            instance: instance.trim_matches('/').to_owned(),
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Address {
    /// The error of a service that can't be used.
    pub(crate) fn unusable(&self, reason: impl fmt::Display, hint: &str) -> Error {
        Error::internal(format!("failed to use `{self}`: {reason}"), hint)
    }

    /// A resource name: the instance, if there is one, and `rest`.
    pub(crate) fn resource(&self, rest: &str) -> String {
        if self.instance.is_empty() { rest.to_owned() } else { format!("{}/{rest}", self.instance) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let parts = |text: &str| {
            let address: Address = text.parse().unwrap();
            (address.uri, address.tls, address.instance)
        };
        let plain = ("http://h:8980".to_owned(), false, String::new());
        assert_eq!(parts("grpc://h:8980"), plain);
        assert_eq!(parts("grpc://h:8980/"), plain);
        let secret = ("https://[::1]".to_owned(), true, "a/b".to_owned());
        assert_eq!(parts("grpcs://[::1]/a/b/"), secret);
        for wrong in ["h:1", "http://h", "grpc://", "grpc:///i", "grpc://h:x", "grpc://h h:1"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
