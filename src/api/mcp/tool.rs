//! The declaration of a tool, which stands beside the handler of its operation.

/// What an agent may call.
#[derive(Debug)]
pub(in crate::api) struct Tool {
    pub name: &'static str,
    /// For a model: what the tool answers, with units and definitions. Parameters have descriptions of their own.
    pub description: &'static str,
    pub answer: Answer,
}

/// The operations, by their ids in the OpenAPI document, whose responses are the answer.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) enum Answer {
    /// The response itself.
    Response(&'static str),
    /// `data` has the data of each response under a name, the rest is of all: of the last one, which may be a list, where they
    /// differ.
    Joined(&'static [(&'static str, &'static str)]),
}
