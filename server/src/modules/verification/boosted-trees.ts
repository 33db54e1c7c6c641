/** A sum of small decision trees, fitted by `server/scripts/fit-trees.ts`. A leaf is its value. */
export type Tree = number | readonly [feature: number, threshold: number, below: Tree, above: Tree]
export type BoostedTrees = { names: readonly string[]; base: number; trees: readonly Tree[] }

export function valueOfTree(tree: Tree, row: readonly number[]): number {
  let node = tree
  while (typeof node !== 'number') node = row[node[0]]! < node[1] ? node[2] : node[3]
  return node
}

/** The log-odds that the trees give to features with these names. */
export function scoreOfTrees(model: BoostedTrees, features: Readonly<Record<string, number>>): number {
  const row = model.names.map((name) => features[name] ?? 0)
  return model.trees.reduce<number>((sum, tree) => sum + valueOfTree(tree, row), model.base)
}
