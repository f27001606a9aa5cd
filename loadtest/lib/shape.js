// Whether an answer has the shape that the API's own document promises: a small part of JSON Schema, as much as the
// document uses for answers. Unknown keywords are passed over; members beyond the schema are welcome.

// What is wrong with a value, as texts that begin with its path.
export function wrong(document, schema, value, path = '') {
  if (schema.$ref) return wrong(document, resolve(document, schema.$ref), value, path);
  const choices = schema.anyOf || schema.oneOf;
  if (choices) {
    return choices.some((choice) => wrong(document, choice, value, path).length === 0)
      ? []
      : [`${path} is none of what it may be`];
  }
  const faults = (schema.allOf || []).flatMap((each) => wrong(document, each, value, path));
  if ('const' in schema && value !== schema.const) faults.push(`${path} is not ${schema.const}`);
  if (schema.enum && !schema.enum.includes(value)) faults.push(`${path} is ${value}, not one of ${schema.enum}`);
  const types = schema.type === undefined ? [] : [].concat(schema.type);
  if (types.length && !types.some((type) => is(type, value))) {
    return [...faults, `${path} is ${JSON.stringify(value)}, not ${types.join(' or ')}`];
  }
  if (is('object', value)) {
    for (const name of schema.required || []) {
      if (!(name in value)) faults.push(`${path}/${name} is missing`);
    }
    for (const [name, member] of Object.entries(value)) {
      const its = schema.properties?.[name] ?? (is('object', schema.additionalProperties) && schema.additionalProperties);
      if (its) faults.push(...wrong(document, its, member, `${path}/${name}`));
    }
  }
  if (Array.isArray(value) && schema.items) {
    value.forEach((item, at) => faults.push(...wrong(document, schema.items, item, `${path}/${at}`)));
  }
  return faults;
}

function resolve(document, reference) {
  return reference
    .split('/')
    .slice(1)
    .reduce((value, name) => value[name.replace(/~1/g, '/').replace(/~0/g, '~')], document);
}

function is(type, value) {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}
