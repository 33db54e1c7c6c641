/** Where a key comes from: the key that made it, and the key that replaced it in a rotation. */
export type KeyOrigin = { id: string; created_by: string | null; replaced_by: string | null }

export type KeyLineage = ReturnType<typeof readLineage>

/** Who made which key. A key and its rotations count as one, so that a rotation changes nothing about it. */
export function readLineage(keys: readonly KeyOrigin[]) {
  const next = new Map(keys.map((key) => [key.id, key.replaced_by]))
  const replacedIds = new Set(keys.map((key) => key.replaced_by))
  /** The rotations of each key, itself included, under the id of every one of them. */
  const chains = new Map<string, Set<string>>()
  // Keys that replaced nothing come first, so that a chain is walked once from its beginning.
  for (const key of keys.toSorted((a, b) => Number(replacedIds.has(a.id)) - Number(replacedIds.has(b.id)))) {
    if (chains.has(key.id)) continue
    const chain = new Set<string>()
    for (let id: string | null | undefined = key.id; id && !chains.has(id); id = next.get(id)) {
      chain.add(id)
      chains.set(id, chain)
    }
  }
  const createdBy = new Map(keys.map((key) => [key.id, key.created_by]))
  const children = Map.groupBy(keys, (key) => key.created_by)

  const rotationsOf = (keyId: string): ReadonlySet<string> => chains.get(keyId) ?? new Set([keyId])

  /** Everything that one walks to from the key, rotations included; not the key and its own rotations. */
  const walk = (keyId: string, stepsFrom: (id: string) => readonly (string | null | undefined)[]): Set<string> => {
    const start = rotationsOf(keyId)
    const lineage = new Set(start)
    const queue = [...start]
    for (let id = queue.pop(); id !== undefined; id = queue.pop())
      for (const reached of stepsFrom(id)) {
        if (!reached || lineage.has(reached)) continue
        for (const rotation of rotationsOf(reached)) lineage.add(rotation)
        queue.push(...rotationsOf(reached))
      }
    for (const id of start) lineage.delete(id)
    return lineage
  }

  return {
    rotationsOf,
    /** The keys that made this one, directly or through others. */
    makersOf: (keyId: string) => walk(keyId, (id) => [createdBy.get(id)]),
    /** The keys that this one made, directly or through others. */
    keysMadeBy: (keyId: string) => walk(keyId, (id) => (children.get(id) ?? []).map((key) => key.id)),
  }
}
