//! Queries of the views for data teams.

use harness::Stack;

/// Runs a query as the read-only user in the database of the views.
pub async fn text(stack: &Stack, sql: &str, format: &str, parameters: &[(&str, String)]) -> String {
    let connection = &stack.connection;
    let mut query = vec![
        ("database".to_owned(), format!("{}_public", connection.clickhouse_database)),
        ("default_format".to_owned(), format.to_owned()),
        ("output_format_json_quote_64bit_integers".to_owned(), "0".to_owned()),
    ];
    query.extend(parameters.iter().map(|(name, value)| (format!("param_{name}"), value.clone())));
    let (user, password) = (&connection.clickhouse_readonly_user, &connection.clickhouse_readonly_password);
    let request =
        stack.client.post(&connection.clickhouse_url).query(&query).basic_auth(user, Some(password));
    let response = request.body(sql.to_owned()).send().await.expect("a response of ClickHouse");
    let is_success = response.status().is_success();
    let text = response.text().await.expect("a text response");
    assert!(is_success && !text.contains("DB::Exception"), "{sql}\n{text}");
    text
}
