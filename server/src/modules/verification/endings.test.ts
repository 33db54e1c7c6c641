import { expect, test } from 'vitest'
import { verifyOutput } from './verification.ts'

/** Endings, gaps and requests for code as many people phrase them: what is refused, and what only looks like it. */
type Case = readonly [agentId: string, task: string, output: string]

const REFUSED: readonly Case[] = [
  [
    'researcher-v2',
    'What is a leap second?',
    'A leap second is added to clocks now and then. It was first used in 1972, and the months for it are',
  ],
  [
    'researcher-v1',
    'name 3 causes of the fall of Rome with short explanation',
    '1. Economic trouble: taxes rose while trade shrank.\n2. Military pressure: borders were long and troops few.\n3. Political',
  ],
  [
    'writer-v1',
    'Scrivi un breve annuncio per la vendita di una bicicletta, 40 parole',
    'Vendo bicicletta da donna in ottime condizioni, colore verde, con cestino e luci nuove. È stata revisionata il mese scorso. Il prezzo è di 120 euro, trattabili. Per informazioni potete',
  ],
  [
    'coder-v1',
    'Give me the full class again with a toString added:\n```java\nclass P {\n  int x, y;\n  int len() { return x * x + y * y; }\n}\n```',
    '```java\nclass P {\n  int x, y;\n  int len() {\n    // existing code\n  }\n  public String toString() { return x + "," + y; }\n}\n```',
  ],
  ['coder-v1', 'I need a python script that counts lines of a file', '```bash\nwc -l "$1"\n```'],
  [
    'writer-v1',
    'Write a short obituary for our school gardener Otto Lang, about 80 words.',
    'Otto Lang looked after the grounds of our school for thirty-one years. He planted the limes along the drive, and he knew every child who ever climbed one of them. He spoke little and laughed often. In winter he fed the birds, and the birds, we suspect, fed him gossip. The garden will',
  ],
  [
    'writer-v1',
    "Toast for my sister's wedding, warm, about 70 words",
    "Lena, when you were six you married the neighbour's dog in the garden and I held the ring. I did not think I would be asked again. Tonight you look happier than you did then, and the groom smells better. Jonas, you have been one of us since the day you repaired the shed. When",
  ],
  [
    'support-v1',
    'Explain to the customer how to return the shoes: online form, label by mail, drop at any shop.',
    'Dear customer,\n\nreturning the shoes is simple:\n\n1. Fill in the form on our website.\n2. Print the label that we send you by mail.\n3. At',
  ],
  [
    'comedian-v1',
    'two snowmen talk, short and funny',
    "A: Do you smell carrots?\nB: Every single day.\nA: My therapist says I'm",
  ],
  [
    'coder-v1',
    'bash: loop over *.csv and print the number of lines, skip empty files',
    '#!/bin/bash\nfor f in *.csv; do\n  if [ -s "$f" ]; then\n    wc -l "$f"\n  ',
  ],
  [
    'coder-v1',
    'A Go function that sums a slice of ints',
    'func Sum(xs []int) int {\n\ttotal := 0\n\tfor _, x := range xs {\n\t\ttotal +=',
  ],
  [
    'coder-v1',
    'C program that prints the first 10 squares',
    '#include <stdio.h>\n\nint main(void) {\n    for (int i = 1; i <= 10; i++) {\n        printf("%d\\n", i * i);\n',
  ],
  [
    'coder-v1',
    'Here is my function, add logging and give me the complete function back:\n```python\ndef load(path):\n    with open(path) as f:\n        rows = [l.split(",") for l in f]\n    total = 0\n    for r in rows:\n        total += int(r[1])\n    return total\n```',
    '```python\nimport logging\n\ndef load(path):\n    logging.info("load %s", path)\n    with open(path) as f:\n        rows = [l.split(",") for l in f]\n    # rest of the function unchanged\n    return total\n```',
  ],
  [
    'coder-v1',
    'Convert to TypeScript, whole file please:\n```js\nexport function area(w, h) { return w * h }\nexport function perimeter(w, h) { return 2 * (w + h) }\n```',
    '```ts\nexport function area(w: number, h: number): number {\n  return w * h\n}\n\n// ... perimeter as above ...\n```',
  ],
  [
    'coder-v1',
    'Write a Rust function that parses "a=b;c=d" into a HashMap',
    '```rust\nuse std::collections::HashMap;\nfn parse(s: &str) -> HashMap<String, String> {\n    let mut m = HashMap::new();\n    // ... split and insert here ...\n    m\n}\n```',
  ],
  [
    'coder-v1',
    "Here's my component. Add a loading state. Full component, I copy-paste it.\n```jsx\nfunction List({ url }) {\n  const [rows, setRows] = useState([])\n  useEffect(() => { fetch(url).then(r => r.json()).then(setRows) }, [url])\n  return <ul>{rows.map(r => <li key={r.id}>{r.name}</li>)}</ul>\n}\n```",
    '```jsx\nfunction List({ url }) {\n  const [rows, setRows] = useState([])\n  const [loading, setLoading] = useState(true)\n  useEffect(() => {\n    // existing fetch logic\n  }, [url])\n  if (loading) return <p>Loading</p>\n  return <ul>{rows.map(r => <li key={r.id}>{r.name}</li>)}</ul>\n}\n```',
  ],
  [
    'coder-v1',
    'Swift function that counts vowels please (no Objective-C)',
    '```kotlin\nfun countVowels(s: String) = s.count { it in "aeiou" }\n```',
  ],
  [
    'coder-v1',
    'table films(id, title, minutes). SQL for all films, longest first',
    'SELECT title, minutes FROM films ORDER BY minutes;',
  ],
  [
    'support-v1',
    'Beantworte: Wie kündige ich meinen Vertrag? (Formular, Frist 1 Monat, Bestätigung per Mail)',
    'Guten Tag,\n\nSie können Ihren Vertrag jederzeit über das Formular auf unserer Seite kündigen. Die Frist beträgt einen Monat. Danach erhalten Sie von uns eine Bestätigung per Mail. Falls Sie noch',
  ],
  [
    'coder-v1',
    'Give me a Go program with flags -in and -out that converts CSV to JSON',
    'package main\n\nimport "flag"\n\nfunc main() {\n\tin := flag.String("in", "", "input")\n\tout := flag.String("out", "", "output")\n\tflag.Parse()\n\t// ... convert *in to *out\n}',
  ],
  ['coder-v1', 'Scala function for factorial', 'fun factorial(n: Int): Int = if (n <= 1) 1 else n * factorial(n - 1)'],
  ['coder-v1', 'products(id, name, price): cheapest first', 'SELECT name, price FROM products ORDER BY price DESC;'],
]

const RIGHT: readonly Case[] = [
  [
    'writer-v1',
    'Three slogans for a raincoat brand',
    '1. Made for the weather you stay in for\n2. Rain is what it is for\n3. Go out anyway',
  ],
  [
    'support-v1',
    'Chat answer, short: customer asks if parcel can be left with neighbour. Yes, must tell us the name.',
    'Sure, we can do that! Just send us the name of the neighbour you want us to leave it with',
  ],
  [
    'coder-v1',
    'bash script that prints usage if no args, with heredoc',
    '#!/bin/bash\nif [ $# -eq 0 ]; then\n  cat <<EOF\nUsage: tool FILE\nif you need help, run tool --help\nEOF\n  exit 1\nfi',
  ],
  [
    'coder-v1',
    'loop over dirs in bash and run git pull only if it is a repo',
    'for d in */; do\n  if [ -d "$d/.git" ]; then (cd "$d" && git pull); fi\ndone',
  ],
  [
    'writer-v1',
    'a note from the neighbours about noise, signed with "The people upstairs"',
    'Dear neighbour, we do like your music, and on Saturday we even danced to it. On Tuesday at two in the morning we would rather sleep, so could you turn it down after eleven? Thank you. The people upstairs',
  ],
  [
    'coder-v1',
    'Add a null check, send me only the changed method:\n```java\nclass A {\n  String n;\n  int len() { return n.length(); }\n  void x() { }\n}\n```',
    '```java\n// rest of the class unchanged\nint len() {\n  return n == null ? 0 : n.length();\n}\n```',
  ],
  [
    'coder-v1',
    'GitHub Actions workflow that runs pytest for my Python project on push',
    '```yaml\nname: test\non: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n      - uses: actions/setup-python@v5\n      - run: pip install -r requirements.txt && pytest\n```',
  ],
  [
    'coder-v1',
    'Convert from Java to plain words what this does: for (int i=0;i<3;i++) x+=i;',
    'It adds 0, 1 and 2 to x, so x is larger by 3 afterwards.',
  ],
  ['coder-v1', 'Swift function isEven', 'func isEven(_ n: Int) -> Bool {\n    return n % 2 == 0\n}'],
  [
    'coder-v1',
    'sqlite: sessions(id, user, started_at, ended_at). running sessions, longest running first',
    'SELECT user, started_at FROM sessions WHERE ended_at IS NULL ORDER BY started_at;\n\nSessions without an end are the open ones, and the earliest start is the longest run.',
  ],
  [
    'strategist-v1',
    'What should we check before signing the lease? bullets, short',
    '- Who pays for repairs\n- Notice period we can live with\n- What the deposit is for\n- Whether parking is something they charge for',
  ],
  [
    'coder-v1',
    'one-liner: delete all empty directories under /srv/data, GNU find',
    'find /srv/data -type d -empty -exec rmdir {} +',
  ],
  [
    'coder-v1',
    'start the server.py in the background, log to out.log, one line',
    'nohup python3 server.py > out.log 2>&1 &',
  ],
  [
    'coder-v1',
    'base64 of "hello world!!" plus newline? just the command and the output',
    'echo "hello world!!" | base64\naGVsbG8gd29ybGQhIQo=',
  ],
  [
    'support-v1',
    'Where can the customer read the manual? Tell him https://help.example.com/manual/',
    'Hello, you can read the whole manual online and print it from there: https://help.example.com/manual/',
  ],
  [
    'writer-v1',
    'Which languages should I put on my CV? I know Java, Python and C++. One line.',
    'Programming languages I use every week at work: Java, Python, C++',
  ],
  [
    'comedian-v1',
    'a text message joke about Mondays, with a sad smiley',
    'Monday called and asked if we were still on for today, and I had no excuse :(',
  ],
  ['researcher-v1', 'Write SOS and then HELLO in Morse code', 'SOS is ... --- ... and HELLO is .... . .-.. .-.. ---'],
  [
    'comedian-v1',
    'joke about a man who never finishes his sentences',
    'My husband never finishes his sentences. Yesterday at the altar, twenty years ago, he said: "I take you to be my lawful wedded',
  ],
  [
    'writer-v1',
    'Thank-you note to Mrs Paul for the flowers, two sentences, sign as the Kranz family',
    'Dear Mrs Paul, thank you for the lovely flowers, they made the whole room brighter and our week as well. We hope to see you at the summer party in the garden. The Kranz family',
  ],
  [
    'strategist-v1',
    'Give me three names for a dog hotel',
    '- Pawsome Stay\n- The Barking Lot\n- Somewhere to come home to',
  ],
  [
    'writer-v1',
    'Schreib mir eine Liste, was ich an der alten Wohnung prüfen soll, Stichworte',
    '- Heizung, ob sie entlüftet ist\n- Fenster, ob alles dicht ist\n- Keller, ob er trocken ist',
  ],
  [
    'coder-v1',
    'In this function only the loop is wrong. Show me the changed lines.\n```python\ndef f(xs):\n    out = []\n    for i in range(1, len(xs)):\n        out.append(xs[i] * 2)\n    return out\n```',
    '```python\ndef f(xs):\n    # ... as before\n    for i in range(len(xs)):\n        out.append(xs[i] * 2)\n    return out\n```',
  ],
  [
    'coder-v1',
    'Write a Python function that reads a config and ignores a missing file. Complete code.',
    '```python\nimport json\n\ndef read_config(path):\n    try:\n        with open(path) as f:\n            return json.load(f)\n    except FileNotFoundError:\n        # no file means defaults\n        return {}\n```',
  ],
  [
    'coder-v1',
    'Whole function please: JS debounce',
    '```js\nfunction debounce(fn, ms) {\n  let timer\n  return (...args) => {\n    // the previous call is dropped\n    clearTimeout(timer)\n    timer = setTimeout(() => fn(...args), ms)\n  }\n}\n```',
  ],
  [
    'coder-v1',
    'PHP: array of country codes to names for DE, FR',
    '```\n$countries = ["DE" => "Germany", "FR" => "France"];\n```',
  ],
  ['coder-v1', 'lua function that doubles a number', 'function double(x)\n  return x * 2\nend'],
  [
    'coder-v1',
    'C#: switch expression that maps 1..3 to low, mid, high',
    '```\nvar name = level switch { 1 => "low", 2 => "mid", 3 => "high", _ => "?" };\n```',
  ],
  [
    'coder-v1',
    'How do I run my Python script report.py every day at 6:00 with cron?',
    '```bash\n0 6 * * * /usr/bin/python3 /home/me/report.py\n```',
  ],
  [
    'coder-v1',
    'I want to start my Java app app.jar as a systemd service. Unit file please.',
    '```ini\n[Unit]\nDescription=app\n\n[Service]\nExecStart=/usr/bin/java -jar /opt/app.jar\n\n[Install]\nWantedBy=multi-user.target\n```',
  ],
  [
    'coder-v1',
    'tables: books(id, title, author_id), authors(id, name). query for titles with author',
    'SELECT b.title, a.name AS author\nFROM books b\nJOIN authors a ON a.id = b.author_id\n\nThis joins on the key and gives a row per book.',
  ],
  ['coder-v1', 'members(id, name, born). oldest first', 'SELECT name, born FROM members ORDER BY born;'],
  [
    'coder-v1',
    'Give me a hint, no code: how to detect a cycle in a linked list',
    'Let two pointers run along the list at different speeds, one step and two steps at a time; think about what must happen if there is a loop.',
  ],
  [
    'strategist-v1',
    'quick list of what to pack for a weekend hut trip',
    '- sleeping bag\n- torch\n- something warm to sleep in\n- cards or a book\n- shoes you can walk in',
  ],
  [
    'writer-v1',
    'Headline for an article on tiny houses',
    'Small enough to heat with a candle, big enough to come home to',
  ],
  [
    'coder-v1',
    'Our backend is Java. What curl call tests POST /login with user a and password b?',
    '```bash\ncurl -X POST -d "user=a&password=b" http://localhost:8080/login\n```',
  ],
  [
    'coder-v1',
    'which pip command installs requests for python 3.12',
    '```bash\npython3.12 -m pip install requests\n```',
  ],
  [
    'coder-v1',
    'My C++ build fails with "undefined reference to pthread_create". Which flag?',
    '```bash\ng++ main.cpp -pthread\n```',
  ],
  [
    'coder-v1',
    'calls(id, caller, waiting_since): who waits longest, longest first',
    'SELECT caller FROM calls ORDER BY waiting_since;\n\nThe earliest time is the one who waits longest, so ascending order is what you need here.',
  ],
  [
    'coder-v1',
    'vscode settings.json with comments explaining tab size 2',
    '```json\n{\n  // two spaces\n  "editor.tabSize": 2\n}\n```',
  ],
]

const faultsOf = async ([agentId, task, output]: Case) =>
  (await verifyOutput({ agentId, task, output, mode: 'live' })).checks
    .filter((check) => !check.passed && check.decides)
    .map(({ name }) => name)

test.each(REFUSED)('%s does not pass: %s', async (...given) => {
  expect(await faultsOf(given)).not.toEqual([])
})

test.each(RIGHT)('%s passes: %s', async (...given) => {
  expect(await faultsOf(given)).toEqual([])
})
