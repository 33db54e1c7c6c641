// Says what the machine lacks before `npm start` runs its command, which a Windows shell would not even understand (`exec`).
import { requireNode } from '../server/bin/required-node.mjs'

requireNode()
