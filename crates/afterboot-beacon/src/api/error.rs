use std::fmt;

/// A beacon that cannot be built as it was described: names the field, its value and what is allowed.
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
enum Kind {
    Config(Vec<String>),
    Start(std::io::Error),
    Ended,
    Storage(String),
}

impl Error {
    pub(crate) fn config(faults: Vec<String>) -> Error {
        Error(Kind::Config(faults))
    }

    pub(crate) fn start(error: std::io::Error) -> Error {
        Error(Kind::Start(error))
    }

    pub(crate) fn ended() -> Error {
        Error(Kind::Ended)
    }

    pub(crate) fn storage(why: impl fmt::Display) -> Error {
        Error(Kind::Storage(why.to_string()))
    }

    /// Is a setting wrong?
    pub fn is_config(&self) -> bool {
        matches!(self.0, Kind::Config(_))
    }

    /// Had the beacon ended, or its runtime gone?
    pub fn is_ended(&self) -> bool {
        matches!(self.0, Kind::Ended)
    }

    /// Did the spool not do what it was asked to?
    pub fn is_storage(&self) -> bool {
        matches!(self.0, Kind::Storage(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Config(faults) => f.write_str(&faults.join("; ")),
            Kind::Start(_) => f.write_str("the beacon's thread or runtime could not be started"),
            Kind::Ended => f.write_str("the beacon has ended"),
            Kind::Storage(why) => write!(f, "the spool did not do it: {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Kind::Start(error) => Some(error),
            _ => None,
        }
    }
}
