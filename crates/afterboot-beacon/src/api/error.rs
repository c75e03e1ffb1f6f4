use std::fmt;

/// An error of building or using a beacon. A wrong setting is named with its value and what is allowed.
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

    /// Returns whether a setting is wrong.
    pub fn is_config(&self) -> bool {
        matches!(self.0, Kind::Config(_))
    }

    /// Returns whether the beacon had ended or its runtime was gone.
    pub fn is_ended(&self) -> bool {
        matches!(self.0, Kind::Ended)
    }

    /// Returns whether the spool failed.
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
            Kind::Storage(why) => write!(f, "the spool failed: {why}"),
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
