//! What a task is called.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The name with which a task was declared, and which of that name it is: the second is shown as `name#2`. The text is made
/// where somebody reads it; most names are never read.
#[derive(Debug, Clone)]
pub(crate) enum Name {
    Fixed { nth: u32, text: &'static str },
    Shared { nth: u32, text: Arc<str> },
}

impl Name {
    pub(crate) fn new(declared: Cow<'static, str>, nth: u32) -> Name {
        match declared {
            Cow::Borrowed(text) => Name::Fixed { nth, text },
            Cow::Owned(text) => Name::Shared { nth, text: text.into() },
        }
    }

    pub(crate) fn declared(&self) -> &str {
        match self {
            Name::Fixed { text, .. } => text,
            Name::Shared { text, .. } => text,
        }
    }

    fn nth(&self) -> u32 {
        let (Name::Fixed { nth, .. } | Name::Shared { nth, .. }) = self;
        *nth
    }

    /// The first of its name is called as it was declared.
    fn is_first(&self) -> bool {
        self.nth() < 2
    }

    /// Whether it is shown as this text.
    pub(crate) fn is(&self, text: &str) -> bool {
        if self.is_first() {
            return self.declared() == text;
        }
        let number = text.strip_prefix(self.declared()).and_then(|rest| rest.strip_prefix('#'));
        number.is_some_and(|number| number == self.nth().to_string())
    }

    pub(crate) fn into_text(self) -> Cow<'static, str> {
        match self {
            Name::Fixed { nth: 0 | 1, text } => Cow::Borrowed(text),
            numbered => Cow::Owned(numbered.to_string()),
        }
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        match self {
            Name::Shared { nth: 0 | 1, text } => Arc::clone(text),
            Name::Fixed { nth: 0 | 1, text } => Arc::from(*text),
            numbered => numbered.to_string().into(),
        }
    }
}

impl From<&'static str> for Name {
    fn from(text: &'static str) -> Name {
        Name::Fixed { nth: 1, text }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        (self.nth(), self.declared()) == (other.nth(), other.declared())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.declared())?;
        if self.is_first() { Ok(()) } else { write!(f, "#{}", self.nth()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_it_is_shown_as_and_nothing_else() {
        for declared in [Cow::Borrowed("a"), Cow::Owned("a".to_owned())] {
            let (first, third) = (Name::new(declared.clone(), 1), Name::new(declared, 3));
            assert_eq!((first.to_string(), third.to_string()), ("a".to_owned(), "a#3".to_owned()));
            assert_eq!((&*first.shared(), &*third.shared()), ("a", "a#3"));
            assert!(first.is("a") && !first.is("a#1") && !first.is("a#3"));
            assert!(third.is("a#3") && !third.is("a") && !third.is("a#03") && !third.is("a#33"));
            assert_eq!((first.into_text(), third.into_text()), ("a".into(), "a#3".into()));
        }
    }

    /// I22: it stands in every record.
    #[test]
    fn a_name_is_no_larger_than_the_text_it_was_given_as() {
        assert_eq!(size_of::<Name>(), size_of::<Cow<'static, str>>());
    }
}
