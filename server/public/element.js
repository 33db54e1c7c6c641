/** Creates an element; empty children are left out. Strings are inserted as text, never parsed as markup. */
export const el = (tag, props = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), props)
  node.append(...children.filter((child) => child || child === 0))
  return node
}

/** Text in which parts in backticks become code elements. */
export const prose = (text = '') =>
  text.split('`').map((part, index) => (index % 2 === 1 ? el('code', { textContent: part }) : part))
