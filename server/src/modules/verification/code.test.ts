import { expect, test } from 'vitest'
import { verifyOutput } from './verification.ts'

/** What docs/verification.md says of code: a task, an output that is refused, and one that is right. */
type Promised = readonly [agentId: string, task: string, wrong: string, right: string]

const CODE: readonly Promised[] = [
  [
    'coder-v1',
    'crashes: unexpectedly found nil. fix please\n```swift\nfunc length(_ s: String?) -> Int {\n    return s!.count\n}\n```',
    '```swift\nfunc length(_ s: String?) -> Int {\n    let text = s!\n    return text.count\n}\n```',
    '```swift\nfunc length(_ s: String?) -> Int {\n    guard let s = s else { return 0 }\n    return s.count\n}\n```',
  ],
  [
    'coder-v1',
    'NPE because name is null sometimes; fix\n```kotlin\nfun initial(name: String?): Char = name!!.first()\n```',
    '```kotlin\nfun initial(name: String?): Char {\n    return name!!.trim().first()\n}\n```',
    "```kotlin\nfun initial(name: String?): Char = name?.firstOrNull() ?: '?'\n```",
  ],
  [
    'coder-v1',
    'Remove the SQL injection.\n```python\ncur.execute(f"SELECT * FROM users WHERE name = \'{name}\'")\n```',
    '```python\nsql = "SELECT * FROM users WHERE name = \'%s\'" % name\ncur.execute(sql)\n```',
    '```python\ncur.execute("SELECT * FROM users WHERE name = %s", (name,))\n```',
  ],
  [
    'coder-v1',
    'Fix the SQL injection\n```ruby\nUser.where("name = \'#{params[:name]}\'")\n```',
    '```ruby\nname = params[:name].to_s\nUser.where("name = \'#{name}\'")\n```',
    '```ruby\nUser.where(name: params[:name])\n```',
  ],
  [
    'coder-v1',
    'loops forever\n```go\nvar i = 0\nfor i < 5 {\n\tfmt.Println(i)\n}\n```',
    '```go\ni := 0\nfor i < 5 {\n\tfmt.Println("row", i)\n}\n```',
    '```go\nfor i := 0; i < 5; i++ {\n\tfmt.Println(i)\n}\n```',
  ],
  [
    'coder-v1',
    'NoSuchElementException for an empty list, please fix\n```kotlin\nfun top(xs: List<Int>): Int = xs.sortedDescending().first()\n```',
    '```kotlin\nfun top(xs: List<Int>): Int {\n    val sorted = xs.sortedDescending()\n    return sorted.first()\n}\n```',
    '```kotlin\nfun top(xs: List<Int>): Int? = xs.maxOrNull()\n```',
  ],
  [
    'coder-v1',
    'Bash: print every .csv file in the folder.',
    '```bash\nfor f in *.csv; do\n  echo "$f"\n```',
    '```bash\nfor f in *.csv; do\n  echo "$f"\ndone\n```',
  ],
  [
    'coder-v1',
    'Bash: print every .csv file in the folder.',
    '```bash\nfor f in *.csv; do\n  echo "$f"\n```',
    '```bash\nfor f in *.csv; do echo "$f"; done\n```',
  ],
  [
    'coder-v1',
    'Fix the ZeroDivisionError in this for zero trips.\n\ndef per_trip(km, trips):\n    return km / trips',
    '```python\ndef per_trip(km, trips):\n    if trips < 0:\n        return 0\n    return km / trips\n```',
    '```python\ndef per_trip(km, trips):\n    if trips <= 0:\n        return 0\n    return km / trips\n```',
  ],
  [
    'coder-v1',
    'This function crashes when the list is empty, please fix.\n\ndef mean(xs):\n    return sum(xs) / len(xs)',
    '```python\ndef mean(xs):\n    if xs is None:\n        return 0\n    return sum(xs) / len(xs)\n```',
    '```python\ndef mean(xs):\n    return sum(xs) / len(xs) if xs else 0.0\n```',
  ],
  [
    'coder-v1',
    'This function crashes when the list is empty, please fix.\n\ndef mean(xs):\n    return sum(xs) / len(xs)',
    '```python\ndef mean(xs):\n    if xs is None:\n        return 0\n    return sum(xs) / len(xs)\n```',
    '```python\nfrom statistics import mean as _mean\n\ndef mean(xs):\n    try:\n        return _mean(xs)\n    except StatisticsError:\n        return 0.0\n```',
  ],
  [
    'coder-v1',
    'Division by zero when seats is 0. Fix it.\n```js\nfunction load(p, seats) {\n  return p / seats;\n}\n```',
    '```js\nfunction load(p, seats) {\n  const ratio = Number(p) / Number(seats);\n  return ratio;\n}\n```',
    '```js\nfunction load(p, seats) {\n  return seats ? p / seats : 0;\n}\n```',
  ],
  [
    'coder-v1',
    'Division by zero when seats is 0. Fix it.\n```js\nfunction load(p, seats) {\n  return p / seats;\n}\n```',
    '```js\nfunction load(p, seats) {\n  const ratio = Number(p) / Number(seats);\n  return ratio;\n}\n```',
    '```js\nconst load = (p, seats) => p / Math.max(1, seats)\n```',
  ],
  [
    'coder-v1',
    'This Go panics with integer divide by zero if days is 0, fix:\n```go\nfunc Avg(sum, days int) int {\n\treturn sum / days\n}\n```',
    '```go\nfunc Avg(sum, days int) int {\n\tresult := sum / days\n\tif days == 0 {\n\t\treturn 0\n\t}\n\treturn result\n}\n```',
    '```go\nfunc Avg(sum, days int) int {\n\tif days == 0 {\n\t\treturn 0\n\t}\n\treturn sum / days\n}\n```',
  ],
  [
    'coder-v1',
    "TypeError: Cannot read properties of undefined (reading 'city'). Fix it.\n```js\nfunction cityOf(user) {\n  return user.address.city;\n}\n```",
    '```js\nfunction cityOf(user) {\n  const city = user.address.city;\n  return city ? city : "unknown";\n}\n```',
    '```js\nfunction cityOf(user) {\n  return user.address?.city ?? "unknown";\n}\n```',
  ],
  [
    'coder-v1',
    'This Swift crashes when nickname is nil. Fix so that it returns "anon".\n\nfunc label(_ u: User) -> String {\n    return u.nickname!.uppercased()\n}',
    '```swift\nfunc label(_ u: User) -> String {\n    let n = u.nickname!\n    return n.isEmpty ? "anon" : n.uppercased()\n}\n```',
    '```swift\nfunc label(_ u: User) -> String {\n    guard let n = u.nickname else { return "anon" }\n    return n.uppercased()\n}\n```',
  ],
  [
    'coder-v1',
    "KeyError: 'phone' on records without it. Please fix.\n\ndef phone_of(rec):\n    return rec['phone'].strip()",
    "```python\ndef phone_of(rec):\n    phone = rec['phone']\n    if phone == '':\n        return None\n    return phone.strip()\n```",
    "```python\ndef phone_of(rec):\n    return rec.get('phone', '').strip()\n```",
  ],
  [
    'coder-v1',
    "KeyError: 'phone' on records without it. Please fix.\n\ndef phone_of(rec):\n    return rec['phone'].strip()",
    "```python\ndef phone_of(rec):\n    phone = rec['phone']\n    if phone == '':\n        return None\n    return phone.strip()\n```",
    "```python\ndef phone_of(rec):\n    if 'phone' not in rec:\n        return ''\n    return rec['phone'].strip()\n```",
  ],
  [
    'coder-v1',
    'This Kotlin throws a NullPointerException if order.note is null; fix it.\n\nfun noteLength(order: Order): Int {\n    return order.note!!.length\n}',
    '```kotlin\nfun noteLength(order: Order): Int {\n    val note = order.note!!.trim()\n    return if (note.isBlank()) 0 else note.length\n}\n```',
    '```kotlin\nfun noteLength(order: Order): Int = order.note?.length ?: 0\n```',
  ],
  [
    'coder-v1',
    'NullPointerException here when getOwner() returns null, fix:\n```java\nString ownerName(Car car) {\n    return car.getOwner().getName();\n}\n```',
    '```java\nString ownerName(Car car) {\n    Owner owner = car.getOwner();\n    String name = owner.getName();\n    return name;\n}\n```',
    '```java\nString ownerName(Car car) {\n    return Optional.ofNullable(car.getOwner()).map(Owner::getName).orElse("");\n}\n```',
  ],
  [
    'coder-v1',
    'Off-by-one, it reads past the end of the array. Fix.\n```js\nfor (let i = 0; i <= items.length; i++) {\n  show(items[i]);\n}\n```',
    '```js\nfor (let i = 1; i <= items.length; i++) {\n  show(items[i]);\n}\n```',
    '```js\nfor (let i = 0; i < items.length; i++) {\n  show(items[i]);\n}\n```',
  ],
  [
    'coder-v1',
    'Off-by-one, it reads past the end of the array. Fix.\n```js\nfor (let i = 0; i <= items.length; i++) {\n  show(items[i]);\n}\n```',
    '```js\nfor (let i = 1; i <= items.length; i++) {\n  show(items[i]);\n}\n```',
    '```js\nfor (let i = 0; i <= items.length - 1; i++) {\n  show(items[i]);\n}\n```',
  ],
  [
    'coder-v1',
    'ArrayIndexOutOfBoundsException, fix please:\n```java\nfor (int i = 0; i <= names.length; i++) {\n    System.out.println(names[i]);\n}\n```',
    '```java\nint n = names.length;\nfor (int i = 0; i <= n; i++) {\n    System.out.println(names[i]);\n}\n```',
    '```java\nfor (String name : names) {\n    System.out.println(name);\n}\n```',
  ],
  [
    'coder-v1',
    'IndexError: list index out of range. Fix:\n\nfor i in range(len(rows) + 1):\n    print(rows[i])',
    '```python\nfor i in range(0, len(rows) + 1):\n    print(rows[i])\n```',
    '```python\nfor row in rows:\n    print(row)\n```',
  ],
  [
    'coder-v1',
    'There is a missing await here: the log shows Promise { <pending> }. Fix.\n```js\nasync function show(id) {\n  const u = loadUser(id);\n  console.log(u);\n}\n```',
    '```js\nasync function show(id) {\n  const u = loadUser(id);\n  console.log("user", u);\n}\n```',
    '```js\nasync function show(id) {\n  const u = await loadUser(id);\n  console.log(u);\n}\n```',
  ],
  [
    'coder-v1',
    'I forgot to await something, total is NaN. Fix it.\n```ts\nasync function total(ids: string[]) {\n  const prices = ids.map((id) => fetchPrice(id));\n  return prices.reduce((a, b) => a + b, 0);\n}\n```',
    '```ts\nasync function total(ids: string[]) {\n  const prices = ids.map((id) => fetchPrice(id));\n  return prices.reduce((a, b) => Number(a) + Number(b), 0);\n}\n```',
    '```ts\nasync function total(ids: string[]) {\n  const prices = await Promise.all(ids.map((id) => fetchPrice(id)));\n  return prices.reduce((a, b) => a + b, 0);\n}\n```',
  ],
  [
    'coder-v1',
    'Fix the SQL injection.\n```python\ndef get(cur, name):\n    cur.execute("SELECT * FROM pets WHERE name = \'" + name + "\'")\n    return cur.fetchall()\n```',
    '```python\ndef get(cur, name):\n    name = name.replace("\'", "\'\'")\n    cur.execute("SELECT * FROM pets WHERE name = \'" + name + "\'")\n    return cur.fetchall()\n```',
    '```python\ndef get(cur, name):\n    cur.execute("SELECT * FROM pets WHERE name = %s", (name,))\n    return cur.fetchall()\n```',
  ],
  [
    'coder-v1',
    'Fix the SQL injection.\n```python\ndef get(cur, name):\n    cur.execute("SELECT * FROM pets WHERE name = \'" + name + "\'")\n    return cur.fetchall()\n```',
    '```python\ndef get(cur, name):\n    query = "SELECT * FROM pets WHERE name = \'{}\'".format(name)\n    cur.execute(query)\n    return cur.fetchall()\n```',
    '```python\ndef get(cur, name):\n    query = "SELECT * FROM pets WHERE name = ?"\n    cur.execute(query, [name])\n    return cur.fetchall()\n```\nBefore, `"… name = \'" + name + "\'"` put the text into the query.',
  ],
  [
    'coder-v1',
    'Fix the SQL injection.\n```python\ndef get(cur, name):\n    cur.execute("SELECT * FROM pets WHERE name = \'" + name + "\'")\n    return cur.fetchall()\n```',
    '```python\ndef get(cur, name):\n    sql = f"SELECT * FROM pets WHERE name = \'{name}\'"\n    cur.execute(sql, ())\n    return cur.fetchall()\n```',
    '```python\ndef get(cur, name):\n    query = "SELECT * FROM pets WHERE name = ?"\n    cur.execute(query, [name])\n    return cur.fetchall()\n```\nBefore, `"… name = \'" + name + "\'"` put the text into the query.',
  ],
  [
    'coder-v1',
    'sql injection in this java, pls fix\n```java\nResultSet find(Connection c, String sku) throws SQLException {\n    Statement s = c.createStatement();\n    return s.executeQuery("SELECT * FROM stock WHERE sku = \'" + sku + "\'");\n}\n```',
    '```java\nResultSet find(Connection c, String sku) throws SQLException {\n    PreparedStatement s = c.prepareStatement("SELECT * FROM stock WHERE sku = \'" + sku + "\'");\n    return s.executeQuery();\n}\n```',
    '```java\nResultSet find(Connection c, String sku) throws SQLException {\n    PreparedStatement s = c.prepareStatement("SELECT * FROM stock WHERE sku = ?");\n    s.setString(1, sku);\n    return s.executeQuery();\n}\n```',
  ],
  [
    'coder-v1',
    'Fix SQL injection in PHP:\n```php\n$q = "DELETE FROM carts WHERE id = " . $_POST["id"];\n$db->exec($q);\n```',
    '```php\n$id = htmlspecialchars($_POST["id"]);\n$q = "DELETE FROM carts WHERE id = $id";\n$db->exec($q);\n```',
    '```php\n$stmt = $db->prepare("DELETE FROM carts WHERE id = :id");\n$stmt->execute(["id" => $_POST["id"]]);\n```',
  ],
  [
    'coder-v1',
    'The list keeps growing between calls because of the mutable default. Fix.\n\ndef collect(x, seen=[]):\n    seen.append(x)\n    return seen',
    '```python\ndef collect(x, seen: list = []):\n    seen.append(x)\n    return list(seen)\n```',
    '```python\ndef collect(x, seen=None):\n    if seen is None:\n        seen = []\n    seen.append(x)\n    return seen\n```',
  ],
  [
    'coder-v1',
    'Default argument is shared between calls, can you fix that?\n```python\ndef tag(item, tags={}):\n    tags[item] = True\n    return tags\n```',
    '```python\ndef tag(item, tags=dict()):\n    tags[item] = True\n    return tags\n```',
    '```python\ndef tag(item, tags=None):\n    tags = {} if tags is None else tags\n    tags[item] = True\n    return tags\n```',
  ],
  [
    'coder-v1',
    'The file is never closed. Please fix this.\n```python\ndef load(path):\n    f = open(path)\n    return f.read()\n```',
    '```python\ndef load(path):\n    f = open(path, encoding="utf-8")\n    text = f.read()\n    return text\n```',
    '```python\ndef load(path):\n    with open(path, encoding="utf-8") as f:\n        return f.read()\n```',
  ],
  [
    'coder-v1',
    'The file is never closed. Please fix this.\n```python\ndef load(path):\n    f = open(path)\n    return f.read()\n```',
    '```python\ndef load(path):\n    f = open(path, encoding="utf-8")\n    text = f.read()\n    return text\n```',
    '```python\nfrom pathlib import Path\n\ndef load(path):\n    return Path(path).read_text(encoding="utf-8")\n```',
  ],
  [
    'coder-v1',
    'This leaks file handles, fix it.\n```go\nfunc size(p string) (int64, error) {\n\tf, err := os.Open(p)\n\tif err != nil {\n\t\treturn 0, err\n\t}\n\tst, err := f.Stat()\n\tif err != nil {\n\t\treturn 0, err\n\t}\n\treturn st.Size(), nil\n}\n```',
    '```go\nfunc size(p string) (int64, error) {\n\tf, err := os.Open(p)\n\tif err != nil {\n\t\treturn 0, fmt.Errorf("open %s: %w", p, err)\n\t}\n\tst, err := f.Stat()\n\tif err != nil {\n\t\treturn 0, err\n\t}\n\treturn st.Size(), nil\n}\n```',
    '```go\nfunc size(p string) (int64, error) {\n\tf, err := os.Open(p)\n\tif err != nil {\n\t\treturn 0, err\n\t}\n\tdefer f.Close()\n\tst, err := f.Stat()\n\tif err != nil {\n\t\treturn 0, err\n\t}\n\treturn st.Size(), nil\n}\n```',
  ],
  [
    'coder-v1',
    'sum shows "0105" instead of 15. Fix.\n```js\nlet sum = 0;\nfor (const el of document.querySelectorAll("input")) {\n  sum += el.value;\n}\n```',
    '```js\nlet sum = 0;\nfor (const el of document.querySelectorAll("input")) {\n  sum = sum + el.value;\n}\n```',
    '```js\nlet sum = 0;\nfor (const el of document.querySelectorAll("input")) {\n  sum += Number(el.value);\n}\n```',
  ],
  [
    'coder-v1',
    'TypeError: can only concatenate str (not "int") to str. Fix\n\nage = 41\nprint("Age: " + age)',
    '```python\nage = 41\nlabel = "Age: "\nprint(label + age)\n```',
    '```python\nage = 41\nprint(f"Age: {age}")\n```',
  ],
  [
    'coder-v1',
    'TypeError: can only concatenate str (not "int") to str. Fix\n\nage = 41\nprint("Age: " + age)',
    '```python\nage = 41\nlabel = "Age: "\nprint(label + age)\n```',
    '```python\nage = 41\nprint("Age:", age)\n```',
  ],
  [
    'coder-v1',
    'Breaks on file names with spaces, fix:\n\nfor f in $(ls *.jpg); do mv $f old/; done',
    '```bash\nfor f in *.jpg; do\n  mv $f old/\ndone\n```',
    '```bash\nfor f in ./*.jpg; do\n  mv -- "$f" old/\ndone\n```',
  ],
  [
    'coder-v1',
    'Breaks on file names with spaces, fix:\n\nfor f in $(ls *.jpg); do mv $f old/; done',
    '```bash\nfor f in `ls *.jpg`; do\n  mv "$f" old/\ndone\n```',
    '```bash\nmv -- *.jpg old/\n```',
  ],
  [
    'coder-v1',
    'Search must be case-insensitive, fix it:\n```js\nconst hits = rows.filter((r) => r.name.includes(term));\n```',
    '```js\nconst hits = rows.filter((r) => r.name.trim().includes(term.trim()));\n```',
    '```js\nconst hits = rows.filter((r) => r.name.toLowerCase().includes(term.toLowerCase()));\n```',
  ],
  [
    'coder-v1',
    'Infinite loop! Please fix.\n```python\ni = 0\nwhile i < 10:\n    print(i)\n```',
    '```python\ni = 0\nwhile i <= 9:\n    print(i)\n```',
    '```python\ni = 0\nwhile i < 10:\n    print(i)\n    i += 1\n```',
  ],
  [
    'coder-v1',
    'This never terminates, what is wrong? Fix it.\n```js\nlet n = 20;\nwhile (n > 0) {\n  console.log(n);\n}\n```',
    '```js\nlet n = 20;\nwhile (n >= 1) {\n  console.log(n);\n  n += 1;\n}\n```',
    '```js\nlet n = 20;\nwhile (n > 0) {\n  console.log(n);\n  n -= 2;\n}\n```',
  ],
  [
    'coder-v1',
    'Schema: trips(id, driver_id, km, started_at), drivers(id, name). SQL: km per driver name.',
    '```sql\nSELECT d.full_name, SUM(t.km) FROM trips t JOIN drivers d ON d.id = t.driver_id GROUP BY d.full_name;\n```',
    '```sql\nSELECT d.name, SUM(t.km) AS total_km\nFROM trips AS t\nJOIN drivers AS d ON d.id = t.driver_id\nGROUP BY d.name\nORDER BY total_km DESC;\n```',
  ],
  [
    'coder-v1',
    'SQL for the 5 newest posts from posts(id, title, created_at).',
    '```sql\nSELECT id, title FROM posts ORDER BY created_at LIMIT 5;\n```',
    '```sql\nSELECT id, title FROM posts ORDER BY created_at DESC LIMIT 5;\n```',
  ],
  [
    'coder-v1',
    'SQL: the ten cheapest products from products(name, price).',
    '```sql\nSELECT name, price FROM products ORDER BY price DESC LIMIT 10;\n```',
    '```sql\nSELECT name, price FROM products ORDER BY price, name LIMIT 10;\n```',
  ],
  [
    'coder-v1',
    'SQL Server: the 4 most recent logins from logins(user_id, at).',
    '```sql\nSELECT TOP 4 user_id, at FROM logins ORDER BY at ASC;\n```',
    '```sql\nSELECT TOP (4) user_id, at FROM logins ORDER BY at DESC;\n```',
  ],
  [
    'coder-v1',
    'Cron line for 6:30 every Monday, running /opt/report.sh',
    '`30 6 * * 2 /opt/report.sh`',
    '`30 6 * * 1 /opt/report.sh`',
  ],
  ['coder-v1', 'crontab entry: every 15 minutes run sync', '```\n15 * * * * sync\n```', '```\n*/15 * * * * sync\n```'],
  [
    'coder-v1',
    'What cron expression runs at 10 pm on weekdays?',
    '`0 10 * * 1-5`',
    '`0 22 * * 1-5` runs at 22:00 from Monday to Friday.',
  ],
  ['coder-v1', 'cron expression: Sundays at 23:45', '`45 23 * *`', '45 23 * * 0'],
  ['coder-v1', 'cron expression for every 2 hours', '`*/2 * * * *`', '`0 */2 * * *`'],
  [
    'coder-v1',
    'Write a Python function called slugify that lowercases a title and replaces spaces with dashes.',
    '```python\ndef make_slug(title):\n    return title.lower().replace(" ", "-")\n```',
    '```python\ndef slugify(title):\n    return title.lower().replace(" ", "-")\n```',
  ],
  [
    'coder-v1',
    'I want a function `isLeap` (JavaScript) for leap years.',
    '```js\nfunction leapYear(y) {\n  return (y % 4 === 0 && y % 100 !== 0) || y % 400 === 0\n}\n```',
    '```js\nconst isLeap = (y) => (y % 4 === 0 && y % 100 !== 0) || y % 400 === 0\n```',
  ],
  [
    'coder-v1',
    'Write parse_price(text) in Python: "12,50 EUR" becomes 12.5.',
    '```python\ndef to_price(text):\n    return float(text.split()[0].replace(",", "."))\n```',
    '```python\ndef parse_price(text):\n    return float(text.split()[0].replace(",", "."))\n```',
  ],
  [
    'coder-v1',
    'Write a Ruby method that returns the longest word of a sentence.',
    '```python\ndef longest(s):\n    return max(s.split(), key=len)\n```',
    '```ruby\ndef longest(s) = s.split.max_by(&:length)\n```',
  ],
  [
    'coder-v1',
    'Give me the SQL to count orders per day from orders(id, placed_on).',
    '```python\nimport pandas as pd\nprint(df.groupby("placed_on").size())\n```',
    '```sql\nSELECT placed_on, COUNT(*) FROM orders GROUP BY placed_on;\n```',
  ],
  [
    'coder-v1',
    'Convert this to Go:\n```python\ndef area(r):\n    return 3.14159 * r * r\n```',
    '```rust\nfn area(r: f64) -> f64 {\n    3.14159 * r * r\n}\n```',
    '```go\nfunc area(r float64) float64 {\n\treturn math.Pi * r * r\n}\n```',
  ],
  [
    'coder-v1',
    'We get "integer division or modulo by zero" in this when the route has no stops:\n```python\ndef pace(minutes, stops):\n    return minutes // stops\n```\nplease repair',
    '```python\ndef pace(minutes, stops):\n    if minutes == 0:\n        return 0\n    return minutes // stops\n```',
    '```python\ndef pace(minutes, stops):\n    if not stops:\n        return 0\n    return minutes // stops\n```',
  ],
  [
    'coder-v1',
    'Repair: divides by zero if `rows` is empty\n```ts\nexport function avg(rows: number[]): number {\n  return rows.reduce((a, b) => a + b, 0) / rows.length\n}\n```',
    '```ts\nexport function avg(rows: number[]): number {\n  if (rows === undefined) return 0\n  return rows.reduce((a, b) => a + b, 0) / rows.length\n}\n```',
    '```ts\nexport function avg(rows: number[]): number {\n  const n = rows.length\n  if (n === 0) return 0\n  return rows.reduce((a, b) => a + b, 0) / n\n}\n```',
  ],
  [
    'coder-v1',
    "AttributeError: 'NoneType' object has no attribute 'title' — book can be missing. Fix it.\n```python\ndef label(loan):\n    return loan.book.title.upper()\n```",
    '```python\ndef label(loan):\n    title = loan.book.title\n    if not title:\n        return ""\n    return title.upper()\n```',
    '```python\ndef label(loan):\n    if loan.book is None:\n        return ""\n    return loan.book.title.upper()\n```',
  ],
  [
    'coder-v1',
    'Crashes with a null reference when Manager is null (C#). Fix:\n```csharp\npublic string Boss(Employee e)\n{\n    return e.Manager.Name;\n}\n```',
    '```csharp\npublic string Boss(Employee e)\n{\n    if (e == null) return "none";\n    return e.Manager.Name;\n}\n```',
    '```csharp\npublic string Boss(Employee e) => e.Manager?.Name ?? "none";\n```',
  ],
  [
    'coder-v1',
    'buffer read goes past the end, fix\n```c\nint sum(const int *v, int n) {\n    int s = 0;\n    for (int i = 0; i <= n; i++)\n        s += v[i];\n    return s;\n}\n```',
    '```c\nint sum(const int *v, int n) {\n    int s = 0;\n    int i = 0;\n    while (i <= n) {\n        s += v[i];\n        i++;\n    }\n    return s;\n}\n```',
    '```c\nint sum(const int *v, int n) {\n    int s = 0;\n    for (int i = 0; i < n; ++i)\n        s += v[i];\n    return s;\n}\n```',
  ],
  [
    'coder-v1',
    'SQL injection risk flagged in this Ruby. Please fix.\n```ruby\ndef find(name)\n  DB.execute("SELECT * FROM guests WHERE name = \'#{name}\'")\nend\n```',
    '```ruby\ndef find(name)\n  clean = name.strip\n  DB.execute("SELECT * FROM guests WHERE name = \'#{clean}\'")\nend\n```',
    '```ruby\ndef find(name)\n  DB.execute("SELECT * FROM guests WHERE name = ?", [name])\nend\n```',
  ],
  [
    'coder-v1',
    'Fix the SQL injection in this C# method.\n```csharp\nvar cmd = new SqlCommand("SELECT * FROM Users WHERE Login = \'" + login + "\'", conn);\nreturn cmd.ExecuteReader();\n```',
    '```csharp\nvar sql = $"SELECT * FROM Users WHERE Login = \'{login}\'";\nvar cmd = new SqlCommand(sql, conn);\nreturn cmd.ExecuteReader();\n```',
    '```csharp\nvar cmd = new SqlCommand("SELECT * FROM Users WHERE Login = @login", conn);\ncmd.Parameters.AddWithValue("@login", login);\nreturn cmd.ExecuteReader();\n```',
  ],
  [
    'coder-v1',
    '`history` persists across calls, mutable default bug. Fix it please\n\ndef log(msg, history={}):\n    history[len(history)] = msg\n    return history',
    '```python\ndef log(msg: str, history: dict = {}):\n    history.update({len(history): msg})\n    return history\n```',
    '```python\ndef log(msg, history=None):\n    history = history if history is not None else {}\n    history[len(history)] = msg\n    return history\n```',
  ],
  [
    'coder-v1',
    'Fix: the log file is not closed.\n```python\ndef tail(path):\n    fh = open(path)\n    return fh.readlines()[-5:]\n```',
    '```python\ndef tail(path):\n    fh = open(path)\n    return fh.readlines()[-5:]\n    fh.close()\n```',
    '```python\ndef tail(path):\n    with open(path) as fh:\n        return fh.readlines()[-5:]\n```',
  ],
  [
    'coder-v1',
    'Comparison should be case insensitive, correct it:\n```java\nboolean same(String a, String b) {\n    return a.equals(b);\n}\n```',
    '```java\nboolean same(String a, String b) {\n    return a.toLowerCase().equals(b);\n}\n```',
    '```java\nboolean same(String a, String b) {\n    return a.equalsIgnoreCase(b);\n}\n```',
  ],
  [
    'coder-v1',
    'endless loop, fix please\n```java\nint left = 5;\nwhile (left > 0) {\n    System.out.println(left);\n}\n```',
    '```java\nint left = 5;\nwhile (left > 0) {\n    System.out.println("left: " + left);\n}\n```',
    '```java\nint left = 5;\nwhile (left > 0) {\n    System.out.println(left--);\n}\n```',
  ],
  [
    'coder-v1',
    'The handler returns a Promise object, await is missing. Fix.\n```js\nexport async function handler(e) {\n  const body = await e.json();\n  const row = save(body);\n  return { id: row.id };\n}\n```',
    '```js\nexport async function handler(e) {\n  const body = await e.json();\n  const row = save(body);\n  return { id: row?.id };\n}\n```',
    '```js\nexport async function handler(e) {\n  const body = await e.json();\n  const row = await save(body);\n  return { id: row.id };\n}\n```',
  ],
  [
    'coder-v1',
    'tables: hikes(id, trail_id, walked_on, km) and trails(id, title). sql for kilometres per trail title in 2024',
    "```sql\nSELECT t.title, SUM(h.distance)\nFROM hikes h JOIN trails t ON t.id = h.trail_id\nWHERE h.walked_on BETWEEN '2024-01-01' AND '2024-12-31'\nGROUP BY t.title;\n```",
    '```sql\nSELECT t.title, SUM(h.km) AS total\nFROM hikes h JOIN trails t ON t.id = h.trail_id\nWHERE EXTRACT(YEAR FROM h.walked_on) = 2024\nGROUP BY t.title;\n```',
  ],
  [
    'coder-v1',
    'Given songs(id, title, plays), write a query returning the seven least played songs.',
    '```sql\nSELECT title, plays FROM songs ORDER BY plays DESC LIMIT 7;\n```',
    '```sql\nSELECT title, plays\nFROM songs\nORDER BY plays ASC\nFETCH FIRST 7 ROWS ONLY;\n```',
  ],
  [
    'coder-v1',
    'crontab line: run /usr/bin/prune each Saturday at 4 am',
    '0 4 * * 5 /usr/bin/prune',
    '0 4 * * 6 /usr/bin/prune',
  ],
  ['coder-v1', 'I need cron syntax for every 10 minutes', '`10 * * * *` does it.', 'Use `*/10 * * * *`.'],
  ['coder-v1', 'Cron for 18:05 on the 20th of each month?', '`5 18 2 * *`', '`5 18 20 * *`'],
  [
    'coder-v1',
    'Implement a function named toTitleCase in JavaScript.',
    '```js\nexport const titleCase = (s) => s.replace(/\\b\\w/g, (c) => c.toUpperCase())\n```',
    '```js\nexport const toTitleCase = (s) => s.replace(/\\b\\w/g, (c) => c.toUpperCase())\n```',
  ],
  [
    'coder-v1',
    'Port this Python to Rust: `def double(x): return x * 2`',
    '```python\ndef double(x: int) -> int:\n    return x * 2\n```',
    '```rust\nfn double(x: i64) -> i64 {\n    x * 2\n}\n```',
  ],
  [
    'coder-v1',
    'shell: loop over hosts.txt and ping each once',
    '```sh\nwhile read -r h; do\n  ping -c1 "$h"\n\n```',
    '```sh\nwhile read -r h; do\n  ping -c1 "$h"\ndone < hosts.txt\n```',
  ],
]

/** Right outputs that look like the wrong ones. */
const RIGHT: readonly (readonly [task: string, output: string])[] = [
  [
    'Fix the division by zero for an empty cart.\n```js\nfunction avgPrice(items) {\n  const sum = items.reduce((s, i) => s + i.price, 0);\n  return sum / items.length;\n}\n```',
    '```js\nfunction avgPrice(items) {\n  const sum = items.reduce((s, i) => s + i.price, 0);\n  const avg = sum / items.length;\n  return Number.isNaN(avg) ? 0 : avg;\n}\n```',
  ],
  [
    'ZeroDivisionError in the last line if no votes. Fix please.\n\ndef share(votes):\n    total = sum(votes.values())\n    return {k: v / total for k, v in votes.items()}',
    '```python\ndef share(votes):\n    total = sum(votes.values()) or 1\n    return {k: v / total for k, v in votes.items()}\n```',
  ],
  [
    'Postgres: division by zero in this query when seats is 0, fix.\n```sql\nSELECT id, sold / seats AS load FROM shows;\n```',
    '```sql\nSELECT id, sold / seats AS load\nFROM shows\nWHERE seats <> 0;\n```',
  ],
  [
    'Rust panics with divide by zero when n is 0, fix\n```rust\nfn mean(sum: u32, n: u32) -> u32 {\n    sum / n\n}\n```',
    '```rust\nfn mean(sum: u32, n: u32) -> Option<u32> {\n    sum.checked_div(n)\n}\n```',
  ],
  [
    'Rust panics with divide by zero when n is 0, fix\n```rust\nfn mean(sum: u32, n: u32) -> u32 {\n    sum / n\n}\n```',
    '```rust\nfn mean(sum: u32, n: u32) -> u32 {\n    match n {\n        0 => 0,\n        _ => sum / n,\n    }\n}\n```',
  ],
  [
    "Cannot read properties of undefined (reading 'name'). Fix\n```js\nfunction teamName(p) {\n  return p.team.name;\n}\n```",
    "```js\nfunction teamName({ team = {} }) {\n  return team.name ?? '';\n}\n```",
  ],
  [
    "KeyError: 'email' for old accounts. Fix\n\ndef mails(accounts):\n    return [a['email'] for a in accounts]",
    "```python\ndef mails(accounts):\n    result = []\n    for a in accounts:\n        try:\n            result.append(a['email'])\n        except KeyError:\n            continue\n    return result\n```",
  ],
  [
    'IndexOutOfBounds, fix the loop\n```java\nfor (int i = 1; i <= list.size(); i++) {\n    print(list.get(i));\n}\n```',
    '```java\nfor (int i = 1; i <= list.size(); i++) {\n    print(list.get(i - 1));\n}\n```',
  ],
  [
    'Off by one: the last page is missing. Fix\n```js\nfor (let p = 1; p < pages; p++) load(p);\n```',
    '```js\nfor (let p = 1; p <= pages; p++) load(p);\n```',
  ],
  [
    'Fix SQL injection in Python, table is fixed:\n```python\ncur.execute(f"UPDATE stock SET qty = {qty} WHERE sku = \'{sku}\'")\n```',
    '```python\ncur.execute(\n    "UPDATE stock "\n    "SET qty = %s "\n    "WHERE sku = %s",\n    (qty, sku),\n)\nprint("updated " + sku)\n```',
  ],
  [
    'endless loop here, fix\n```python\nwhile queue:\n    job = queue[0]\n    run(job)\n```',
    '```python\nwhile queue:\n    job = queue.pop(0)\n    run(job)\n```',
  ],
  [
    'It loops forever, please fix\n```js\nlet page = 1;\nlet data;\ndo {\n  data = await get(page);\n} while (data.length > 0);\n```',
    '```js\nlet page = 1;\nlet data;\ndo {\n  data = await get(page);\n  page += 1;\n} while (data.length > 0);\n```',
  ],
  [
    'make the lookup case-insensitive, now it fails for "BOB"\n```python\nUSERS = {"bob": 1}\ndef find(name):\n    return USERS[name]\n```',
    '```python\nUSERS = {"bob": 1}\n\ndef find(name):\n    return USERS.get(name.lower())\n```',
  ],
  [
    'Query the last 5 messages in chronological order: messages(id, body, sent_at). SQL.',
    '```sql\nSELECT * FROM (\n  SELECT id, body, sent_at FROM messages ORDER BY sent_at DESC LIMIT 5\n) AS t\nORDER BY sent_at ASC;\n```',
  ],
  [
    'cron that runs at 2 am on the first Sunday of every month',
    '```\n0 2 1-7 * * [ "$(date +\\%u)" = 7 ] && /opt/job\n```',
  ],
]

test.each(CODE)('%s: %s', async (agentId, task, wrong, right) => {
  const refusals = async (output: string) =>
    (await verifyOutput({ agentId, task, output, mode: 'live' })).checks
      .filter(({ passed, decides, name }) => !passed && decides && READ.has(name))
      .map(({ name, detail }) => `${name}: ${detail}`)
  expect(await refusals(right)).toEqual([])
  expect(await refusals(wrong)).not.toEqual([])
})

test.each(RIGHT)('%s is mended', async (task, output) => {
  const { checks } = await verifyOutput({ agentId: 'coder-v1', task, output, mode: 'live' })
  expect(checks.filter(({ passed, name }) => !passed && READ.has(name))).toEqual([])
})

const READ: ReadonlySet<string> = new Set(['asked_for', 'recomputed'])
