//! Parses the Graph API's field expressions: nested names with arguments.

const MAX_DEPTH: usize = 8;

/// One field of an expression, as `media.after(x).limit(50){id,caption}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphField {
    pub name: String,
    pub arguments: Vec<(String, String)>,
    pub fields: Vec<GraphField>,
}

impl GraphField {
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Parses an expression; `None` if it is invalid.
pub fn parse_fields(text: &str) -> Option<Vec<GraphField>> {
    let mut rest = text;
    let fields = parse_list(&mut rest, 0)?;
    rest.is_empty().then_some(fields)
}

fn parse_list(rest: &mut &str, depth: usize) -> Option<Vec<GraphField>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut fields = Vec::new();
    loop {
        fields.push(parse_field(rest, depth)?);
        match rest.strip_prefix(',') {
            Some(after) => *rest = after,
            None => return Some(fields),
        }
    }
}

fn parse_field(rest: &mut &str, depth: usize) -> Option<GraphField> {
    let mut field = GraphField { name: parse_name(rest)?, arguments: Vec::new(), fields: Vec::new() };
    while let Some(after_dot) = rest.strip_prefix('.') {
        *rest = after_dot;
        let name = parse_name(rest)?;
        let (value, after) = rest.strip_prefix('(')?.split_once(')')?;
        field.arguments.push((name, value.to_owned()));
        *rest = after;
    }
    if let Some(after) = rest.strip_prefix('{') {
        *rest = after;
        field.fields = parse_list(rest, depth + 1)?;
        *rest = rest.strip_prefix('}')?;
    }
    Some(field)
}

fn parse_name(rest: &mut &str) -> Option<String> {
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after;
    (!word.is_empty()).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_expression_is_parsed() {
        let fields = parse_fields(
            "business_discovery.username(some.one){id,media.after(QVFI_x).limit(5){id,caption}}",
        )
        .unwrap();
        assert_eq!(fields[0].argument("username"), Some("some.one"));
        let media = &fields[0].fields[1];
        assert_eq!((media.argument("after"), media.argument("limit")), (Some("QVFI_x"), Some("5")));
        assert_eq!(
            media.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(),
            ["id", "caption"]
        );
    }

    #[test]
    fn invalid_expression_is_rejected() {
        for text in ["", "a,", "a{", "a{}", "a.b", "a.b(c", "a}", "a b", &"a{".repeat(50)] {
            assert_eq!(parse_fields(text), None, "{text}");
        }
    }
}
