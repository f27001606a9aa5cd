//! Reads the JSON of a body. An object that names a member twice is noticed, since a plain value would keep the last
//! one and hide the other.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How many repeated members are told, and how many characters of the path of each: a small body can repeat very many
/// members below a very long name.
const TOLD: usize = 100;
const PATH_CHARACTERS: usize = 1_000;

/// What a body says.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    pub value: Value,
    /// The members that an object names more than once, by their dotted paths; the first of them, if they are many.
    pub repeated: Vec<String>,
}

/// Reads one JSON value and nothing after it.
pub fn read(bytes: &[u8]) -> Result<Sent, serde_json::Error> {
    let mut repeated = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Node { place: &Place::Root, repeated: &mut repeated }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Sent { value, repeated })
}

/// Where in the body a value stands.
enum Place<'a> {
    Root,
    Member(&'a Place<'a>, &'a str),
    Entry(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Member(Place::Root, name) => f.write_str(name),
            Place::Member(parent, name) => write!(f, "{parent}.{name}"),
            Place::Entry(parent, number) => write!(f, "{parent}[{number}]"),
        }
    }
}

/// A value that is about to be read.
struct Node<'a> {
    place: &'a Place<'a>,
    repeated: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        loop {
            let place = Place::Entry(self.place, values.len());
            match entries.next_element_seed(Node { place: &place, repeated: self.repeated })? {
                Some(value) => values.push(value),
                None => return Ok(Value::Array(values)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let place = Place::Member(self.place, &name);
            let value = members.next_value_seed(Node { place: &place, repeated: self.repeated })?;
            if self.repeated.len() < TOLD && values.contains_key(&name) {
                self.repeated.push(place.to_string().chars().take(PATH_CHARACTERS).collect());
            }
            values.insert(name, value);
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_reads_as_it_would_without_looking_for_repetitions() {
        let text = r#"{"a": [null, true, -1, 18446744073709551615, 1.5, "é\u00e9\ud83d\ude00", {}, [[]]], "": {"b": 0}}"#;
        let sent = read(text.as_bytes()).unwrap();
        assert_eq!(sent, Sent { value: serde_json::from_str(text).unwrap(), repeated: Vec::new() });
    }

    #[test]
    fn repeated_members_are_named_by_their_paths() {
        let text =
            r#"{"a": 1, "b": {"c": 1, "d": 2, "c": 3}, "e": [{}, {"f": 1, "f": 1}], "a": 2, "g": {"a": 1}}"#;
        assert_eq!(read(text.as_bytes()).unwrap().repeated, ["b.c", "e[1].f", "a"]);
    }

    #[test]
    fn what_is_told_of_repeated_members_is_bounded() {
        let (name, members) = ("n".repeat(100_000), [r#""a":1"#; 50_000].join(","));
        let repeated = read(format!(r#"{{"{name}": {{{members}}}}}"#).as_bytes()).unwrap().repeated;
        assert_eq!(repeated, vec![name[..PATH_CHARACTERS].to_owned(); TOLD]);
    }

    #[test]
    fn what_is_no_json_or_nests_too_deeply_is_an_error() {
        for text in ["", "{", "{} {}", "{'a': 1}", "NaN", r#""\ud800""#, "[1,]", &"[".repeat(100_000)] {
            assert!(read(text.as_bytes()).is_err(), "{}", &text[..text.len().min(20)]);
        }
        assert!(read(b"\"\xff\"").is_err());
    }
}
