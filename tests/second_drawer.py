#!/usr/bin/env python3
"""Draws items, pairs and scenarios a second time, written from host/arena-log/FORMAT.md alone:

    second_drawer.py FORMAT.md REQUEST

The request is JSON. Tables and lists of words are read from the page itself. Printed are, for
`items`, the hash of the catalog that is played; for `pairs`, agents, item and repetition of each;
for `scenarios`, budget, opener, turns and whether they are hidden.
"""
import hashlib, json, struct, sys

def rotate(word, by):
    return (word << by | word >> 32 - by) & 0xffffffff

def block(key, counter):
    """The block function of RFC 8439 section 2.3, with a counter of 64 bits and stream id 0."""
    start = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, *struct.unpack("<8L", key)]
    start += [counter & 0xffffffff, counter >> 32, 0, 0]
    s = start[:]
    quarters = [(i, i + 4, i + 8, i + 12) for i in range(4)]
    quarters += [(i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12) for i in range(4)]
    for _ in range(10):
        for a, b, c, d in quarters:
            for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                s[x] = s[x] + s[y] & 0xffffffff
                s[z] = rotate(s[z] ^ s[x], by)
    return [left + right & 0xffffffff for left, right in zip(s, start)]

class Stream:
    def __init__(self, root, purpose, *address):
        label = b"arena/seed/v1\0" if isinstance(root, int) else b"arena/seed/v2\0"
        root = root.to_bytes(8, "big") if isinstance(root, int) else bytes.fromhex(root)
        numbers = b"".join(number.to_bytes(8, "big") for number in address)
        self.key = hashlib.sha256(label + root + purpose.encode() + b"\0" + numbers).digest()
        self.words, self.counter = [], 0

    def draw(self):
        if not self.words:
            self.words, self.counter = block(self.key, self.counter), self.counter + 1
        return self.words.pop(0) | self.words.pop(0) << 32

    def below(self, n):
        while (drawn := self.draw()) >= 2**64 // n * n:
            pass
        return drawn % n

    def between(self, a, b):
        return a + self.below(b - a + 1)

    def sample(self, n, k):
        values = list(range(n))
        for i in range(k):
            j = i + self.below(n - i)
            values[i], values[j] = values[j], values[i]
        return sorted(values[:k])

def lists(page):
    """Returns what stands below each name that is set in by four blanks, as one text."""
    found, name = {}, None
    for line in page.splitlines():
        if line.startswith("      ") and name:
            found[name] = " ".join([*found.get(name, "").split(), *line.split()])
        else:
            name = line.strip() if line.startswith("    ") else None
    return found

def text(value):
    return len(value.encode()).to_bytes(4, "little") + value.encode()

def item(key, title, category, description, price, cost, budget):
    numbers = struct.pack("<LLBL", price, cost, 0, budget)
    return key, text(key) + text(title) + text(category) + text(description) + numbers

def uniform(i, low, high, root):
    stream = Stream(root, "uniform", i)
    budget, cost = stream.between(low, high), stream.between(low, high)
    shown = [f"${cents // 100}.{cents % 100:02}" for cents in (low, high)]
    said = f"A token of no other use. Both reserves are drawn evenly from {shown[0]} to {shown[1]}."
    return item(f"uniform/{i}", f"Token {i + 1}", "uniform", said, high, cost, budget)

def synthetic(i, is_feasible, words, root):
    stream, ranks, shift = Stream(root, "synthetic", i), 1_048_576, 734_003
    def at(name, rank):
        table = [int(point) for point in words[name].split()]
        x = rank * (len(table) - 1)
        j = x // ranks
        return table[j] + (table[j + 1] - table[j]) * (x % ranks) // ranks
    def pick(name):
        values = words[name].split(", ")
        return values[stream.below(len(values))]
    r = stream.below(ranks)
    price = at("prices", r)
    price = price - price % 100 + 99
    t = r + stream.below(2 * shift + 1) - shift
    t = -1 - t if t < 0 else 2 * ranks - 1 - t if t >= ranks else t
    cost = price * at("cost shares", t) // 1_000_000
    if is_feasible:
        budget = stream.between(max(cost + 1, price * 600 // 1000), price)
    else:
        budget = stream.between(cost * 600 // 1000, cost - 1)
    kinds = [name for name in words if name.startswith("things of ")]
    kind = kinds[stream.below(8)]
    thing, brand, quality = pick(kind), pick("brands"), pick("qualities")
    model, first, second = stream.between(100, 999), pick("features"), pick("features")
    second = "sold as one piece" if first == second else second
    said = f"Made-up product for negotiation experiments. A {quality} {thing}: {first}, {second}."
    title = f"{brand} {model} {quality} {thing}"
    return item(f"synthetic/{i}", title, kind.removeprefix("things of "), said, price, cost, budget)

def items(asked, page):
    n, root, kind = asked["items"], asked["root"], asked["kind"]
    if kind == "uniform":
        made = [uniform(i, asked["low"], asked["high"], root) for i in range(n)]
    else:
        count = (n * asked["infeasible"] + 500) // 1000
        without, words = Stream(root, "synthetic-infeasible").sample(n, count), lists(page)
        made = [synthetic(i, i not in without, words, root) for i in range(n)]
    def is_test(key):
        head = hashlib.sha256(b"arena/split/v1\0" + key.encode()).digest()[:8]
        return int.from_bytes(head, "big") < 2**64 * 128 // 930
    parts = ["test" if is_test(key) else "train" for key, _ in made]
    made = [one for one, part in zip(made, parts) if asked["split"] in ("all", part)]
    if asked["sample"] is not None:
        made = [made[i] for i in Stream(root, "sample").sample(len(made), asked["sample"])]
    entries = b"".join(data for _, data in made)
    print(hashlib.sha256(text(kind) + len(made).to_bytes(4, "little") + entries).hexdigest())

def pairings(asked):
    a, own = asked["agents"], asked["self_play"]
    if asked["candidates"] is not None:
        candidates = asked["candidates"]
        field = [agent for agent in range(a) if agent not in candidates]
        crossed = [(candidate, other) for other in field for candidate in candidates]
        if asked["sell"]:
            crossed = [(other, candidate) for candidate, other in crossed]
        return crossed + [(one, one) for one in candidates if own]
    k, found = a if a % 2 else a - 1, []
    for j in range(a * (a - 1) // 2):
        g, h = divmod(j, a // 2)
        d = h + 1 if a % 2 else h
        meet = (g, k) if a % 2 == 0 and h == 0 else ((g + d) % k, (g - d) % k)
        found.append((min(meet), max(meet)))
    return found + [(one, one) for one in range(a) if own]

def pairs(asked, _):
    numbered, n = pairings(asked), asked["items"]
    p = len(numbered)
    for i in range(p * n * asked["repetitions"]):
        print(*numbered[i % p], i // p % n, i // (p * n))

def scenarios(asked, _):
    for i, price in enumerate(asked["prices"]):
        for repetition in range(asked["repetitions"]):
            stream = Stream(asked["root"], "scenario", i, repetition // asked["group"])
            low, high = asked["factor"]
            factor = low if low == high else stream.between(low, high)
            opener = asked["opener"] or ("seller" if stream.below(2) else "buyer")
            mean, most = asked["horizon"]
            turns = most
            if mean:
                turns = next((turn for turn in range(1, most) if stream.below(mean) == 0), most)
            print(-(-price * factor // 1000), opener, turns, "hidden" if mean else "known")

if __name__ == "__main__":
    asked = json.loads(sys.argv[2])
    with open(sys.argv[1], encoding="utf-8") as page:
        {"items": items, "pairs": pairs, "scenarios": scenarios}[asked["what"]](asked, page.read())
