import { expect, test } from 'vitest'
import { findSyntaxFaults } from './syntax-faults.ts'

const WRONG = [
  'on:\n  push:\n    branches: [main\njobs:\n  test: 1',
  'services:\n  web:\n    ports:\n      - "8080:8080\n  redis: 1',
  'env:\n\tLOG: info',
  'data:\n  MODE: prod\n PORT: "80"',
  'responses:\n  ok:\n    description: fine: the service is up',
]
const RIGHT = [
  'services:\n  web:\n    command: >\n      sh -c "npm ci &&\n      npm start"   # it\'s fine\n    note: it\'s [not] a "list',
  'test:\n  script:\n  - npm ci\n  - |\n    if [ -f .env ]; then\n        source .env\n    fi',
  'a: 1\n---\nb: !Ref Queue\nb: 2',
  'name: {{ .Values.name }}\nimage: "{{ .Values.image }}"',
]

test.each(WRONG)('YAML that does not parse is a fault: %j', async (code) => {
  expect(await findSyntaxFaults([{ language: 'yaml', code }])).toEqual(['The YAML in it does not parse.'])
})

test.each(RIGHT)('YAML that a reader of it accepts is none: %j', async (code) => {
  expect(await findSyntaxFaults([{ language: 'yaml', code }])).toEqual([])
})
