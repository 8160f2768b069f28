// A C++ or Rust name cut down to what tells most where the whole does not fit: without arguments,
// without template arguments, then without its outer namespaces.

const kLongest = 400; // of the name that is looked at

// Takes away what stands in ( ) and < >.
function withoutBrackets(name: string): string {
  let out = '';
  let depth = 0;
  for (const character of name) {
    if (character === '(' || character === '<') ++depth;
    if (depth === 0) out += character;
    if ((character === ')' || character === '>') && depth > 0) --depth;
  }
  return out.replace(/::(::)+/g, '::').replace(/^::|::$/g, '').trim();
}

// Longest first. Placeholders have none, nor have operators, whose names are made of brackets.
export function shorterNames(name: string): string[] {
  const first = name[0];
  if (name.length > kLongest || first === '[' || first === '(' || first === '<') return [];
  if (name.includes('operator')) return [];
  const bare = withoutBrackets(name);
  const names = bare !== '' && bare !== name ? [bare] : [];
  const parts = bare.split('::');
  for (let i = 1; i < parts.length; ++i) {
    if (parts[i]!.startsWith('{')) break; // {closure#0} alone says nothing
    names.push(parts.slice(i).join('::'));
  }
  return names.filter((shorter) => shorter !== '');
}

// What to write into `columns` characters: "" where less than three of them would be legible.
// Only names of functions are taken apart; others lose their end.
export function fittingName(name: string, columns: number, isFunction: boolean): string {
  if (columns < 3) return '';
  if (name.length <= columns) return name;
  for (const shorter of isFunction ? shorterNames(name) : []) {
    if (shorter.length <= columns) return shorter;
  }
  return `${name.slice(0, columns - 1)}…`;
}
