// Text as search compares it.

// Each character becomes the first of its lower case, wherever it stands: as the service folds, unlike toLowerCase of a word.
export function fold(text) {
  return Array.from(text, (character) => Array.from(character.toLowerCase())[0]).join('');
}

export function contains(text, q) {
  return fold(text).includes(fold(q.trim()));
}
