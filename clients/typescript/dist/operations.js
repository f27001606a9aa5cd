// What each operation takes and returns, derived from the generated types of the OpenAPI document.
export {};
