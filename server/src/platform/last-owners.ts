const ABOUT_MS = 5_000

/** Remembers who came last, and who came last before that one: enough to say whether an owner is alone. */
export function createLastOwners() {
  const never = { owner: '', at: Number.NEGATIVE_INFINITY }
  let last = never
  let other = never
  return {
    note(owner: string) {
      if (owner !== last.owner) other = last
      last = { owner, at: performance.now() }
    },
    /** Whether somebody else came within the last seconds. */
    areOthersAbout: (owner: string) => (last.owner === owner ? other : last).at >= performance.now() - ABOUT_MS,
  }
}
