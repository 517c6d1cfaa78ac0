#!/usr/bin/env python3
"""Reads a finished tournament's log a second time, written from host/arena-log/FORMAT.md alone:

    second_reader.py LOG VKEY [--json]

Checks the head's signature, the root and all hash tiles, the form and order of entries and
transcripts, the hashes between them, counts and commitments, and recomputes rewards as exact
fractions. Exits 1 and names the entry that is wrong. What was drawn, a beacon's signature, rules,
limits, ratings and tables are left to `arena audit`.
"""
import base64, hashlib, json, os, sys, tomllib
from fractions import Fraction

ENTRY_BYTES_MAX, ATTACHMENT_BYTES_MAX, BLOB_BYTES_MAX = 65_535, 8 << 20, 16 << 20

def need(holds, what):
    if not holds:
        raise ValueError(what)

def sha256(*parts): return hashlib.sha256(b"".join(parts)).digest()

# Ed25519 (RFC 8032), strictly: canonical points of large order and a canonical S only.
P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
BASE_Y = 4 * pow(5, -1, P) % P

def point(data):
    """Returns a point in extended coordinates; None if the 32 bytes are not canonical."""
    y, sign = int.from_bytes(data, "little") & (1 << 255) - 1, data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * pow(2, (P - 1) // 4, P) % P
    if y >= P or x * x % P != square or (x == 0 and sign):
        return None
    x = x if x & 1 == sign else P - x
    return (x, y, 1, x * y % P)

def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)

def times(n, p):
    total = (0, 1, 1, 0)
    while n:
        total, p, n = add(total, p) if n & 1 else total, add(p, p), n >> 1
    return total

def same(p, q): return (p[0] * q[2] - q[0] * p[2]) % P == 0 == (p[1] * q[2] - q[1] * p[2]) % P

def ed25519_verifies(key, message, signature):
    a, r = point(key), point(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or a is None or r is None or s >= ORDER or any(
            same(times(8, p), times(0, p)) for p in (a, r)):
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little")
    return same(times(s, point(BASE_Y.to_bytes(32, "little"))), add(r, times(k, a)))

# Signed notes and checkpoints (C2SP signed-note, tlog-checkpoint).
def unbase64(text, what):
    data = base64.b64decode(text, validate=True)
    need(base64.b64encode(data).decode() == text, f"{what} is not canonical base64")
    return data

def parse_vkey(vkey):
    name, key_id, key = vkey.split("+", 2)
    key = unbase64(key, "the key")
    need(len(key) == 33 and key[0] == 1, "VKEY is no key of Ed25519")
    need(sha256(name.encode(), b"\n", key)[:4].hex() == key_id, "VKEY's id is not of its key")
    return name, bytes.fromhex(key_id), key[1:]

def open_checkpoint(note, vkey):
    """Returns size and root of a head that the key has signed."""
    name, key_id, key = parse_vkey(vkey)
    (text, _, lines), signed = note.decode().rpartition("\n\n"), False
    need(lines.endswith("\n"), "the checkpoint is not a signed note")
    for line in lines[:-1].split("\n"):
        dash, signer, signature = line.split(" ")
        signature = unbase64(signature, "a signature")
        need(dash == "\u2014", "a line of the checkpoint is not a signature")
        if (signer, signature[:4]) == (name, key_id):
            signed = ed25519_verifies(key, f"{text}\n".encode(), signature[4:])
            need(signed, "the checkpoint's signature does not verify")
    need(signed, f"the checkpoint is not signed by {name}")
    origin, size, root = text.split("\n")
    need(origin == name and size == str(abs(int(size))), "the head is another's or not canonical")
    return int(size), unbase64(root, "the root")

# Files, whose paths come from numbers and hashes only.
def read(folder, path, bytes_max):
    place = os.path.join(folder, path)
    need(os.path.isfile(place) and not os.path.islink(place), f"{path} is no plain file")
    with open(place, "rb") as file:
        data = file.read(bytes_max + 1)
    need(len(data) <= bytes_max, f"{path} has more than {bytes_max} bytes")
    return data

def tile(number, width):
    groups = [group.zfill(3) for group in f"{number:,}".split(",")]
    path = "".join(f"x{group}/" for group in groups[:-1]) + groups[-1]
    return path if width == 256 else f"{path}.p/{width}"

def bundles(folder, kind, size, prefix, item_max):
    """Yields the items of all bundles of a kind."""
    for first in range(0, size, 256):
        width = min(256, size - first)
        path = f"{kind}/{tile(first // 256, width)}"
        data, at = read(folder, path, width * (prefix + item_max)), 0
        for _ in range(width):
            length = int.from_bytes(data[at : at + prefix], "big")
            at += prefix + length
            need(length <= item_max and at <= len(data), f"{path} is cut short or has a long item")
            yield data[at - length : at]
        need(at == len(data), f"{path} goes on behind its last item")

def check_tree(folder, entries, root):
    above = lambda level: [sha256(b"\1", a, b) for a, b in zip(level[::2], level[1::2])]
    hashes = level = [sha256(b"\0", entry) for entry in entries]
    for number in range(8):
        for first in range(0, len(level), 256):
            wanted = level[first : first + 256]
            path = f"tile/{number}/{tile(first // 256, len(wanted))}"
            data = read(folder, path, 8192)
            wrong = [first + n for n, node in enumerate(wanted) if data[32 * n :][:32] != node]
            where = f"{'node' if number else 'entry'} {min(wrong, default='none')}"
            need(data == b"".join(wanted), f"{path} differs at {where}")
        for _ in range(8):
            level = above(level)
    while len(hashes) > 1:
        hashes = above(hashes) + hashes[len(hashes) & ~1 :]
    need(hashes[0] == root, f"the entries' root is {hashes[0].hex()}, the signed one {root.hex()}")

# Borsh: a type is a function that takes a value off a reader.
class Reader:
    def __init__(self, data, kinds):
        self.data, self.at = data, 0
        need(self.take(6) == b"ARNA\0\3", "does not start with `ARNA` and layout version 3")
        self.kind = int.from_bytes(self.take(2), "big")
        need(self.kind in kinds, f"is of kind {self.kind}, not {' or '.join(map(str, kinds))}")
        self.value = kinds[self.kind](self)
        need(self.at == len(data), "has bytes behind its end")

    def take(self, count):
        self.at += count
        need(self.at <= len(self.data), "is cut short")
        return self.data[self.at - count : self.at]

def number(count, **signed): return lambda r: int.from_bytes(r.take(count), "little", **signed)
def raw(count): return lambda r: r.take(count).hex()
def array(kind, count): return lambda r: [kind(r) for _ in range(count)]
def many(kind): return lambda r: array(kind, U32(r))(r)
def option(kind): return lambda r: kind(r) if BOOL(r) else None
def struct(**fields): return lambda r: {name: kind(r) for name, kind in fields.items()}

def enum(*variants):
    def take(r):
        tag = U8(r)
        need(tag < len(variants), f"has a tag of {tag} where {len(variants)} are known")
        variant = variants[tag]
        return {variant[0]: variant[1](r)} if isinstance(variant, tuple) else variant
    return take

U8, U16, U32, U64, I32 = number(1), number(2), number(4), number(8), number(4, signed=True)
HASH, BOOL, TEXT = raw(32), enum(False, True), lambda r: r.take(U32(r)).decode()
METRIC, SCORE = lambda r: [TEXT(r), I32(r)], lambda r: [U32(r), I32(r)]
ROLE, REASON = enum("buyer", "seller"), enum("model-provider", "host")
FAULT = enum("trap", "fuel", "memory", "protocol", "illegal-move", "talk-too-long", "model-budget")
MOVE = enum(("offer", U32), ("accept", option(U32)), "reject", "walk")
OUTCOME = enum(("deal", struct(price=U32)), ("walked", struct(by=ROLE)), "timed-out", (
    "violated", struct(by=ROLE, action=MOVE)), ("faulted", struct(by=ROLE, fault=FAULT)))
PLACE = dict(pair_index=U64, leg=U8, agents=array(U16, 2), item_index=U32, repetition=U32)
ENTRIES = {
    1: struct(origin=TEXT, log_key=HASH, announcement_sha256=HASH),
    2: struct(tournament=HASH, **PLACE, outcome=OUTCOME, turn_count=U32, transcript_sha256=HASH),
    3: struct(tournament=HASH, void=struct(pair_index=U64, attempt=U32, reason=REASON)),
    4: struct(tournament=HASH, match_count=U64, void_count=U64),
    5: struct(tournament=HASH, secret=option(HASH)),
    6: struct(tournament=HASH, contributions=many(option(HASH)),
              beacon=option(struct(round=U64, signature=raw(48))))}
COMMITTED = struct(secret_commitment=HASH, contributions=many(HASH),
                   beacon=option(struct(chain=HASH, round=U64)))
ANNOUNCEMENT = {256: struct(
    name=TEXT, config_toml=TEXT, draws=enum(("public-seed", U64), ("committed", COMMITTED)),
    engine=TEXT, models=many(struct(name=TEXT, context_tokens=U32, sha256=HASH, engine=TEXT)),
    agents=many(struct(name=TEXT, component_sha256=HASH, params=TEXT, submission=option(TEXT))),
    catalog_sha256=HASH, item_count=U32, pair_count=U64, checkpoint_every=U32)}
TURN = struct(by=ROLE, refused=many(MOVE), action=MOVE, talk=TEXT,
              belief=option(struct(reserve=U32, spread=U32)))
SAMPLING = struct(temperature_milli=U32, top_k=U32, top_p_milli=U32, min_p_milli=U32)
SAMPLED = struct(id=U32, logprob_micro=I32, sampled_logprob_micro=I32, top=many(SCORE))
TOKENS = struct(reused=U32, prompt=many(U32), output=many(SAMPLED))
CALL = struct(act_index=U32, model=TEXT, request_sha256=HASH, sampling=SAMPLING,
              is_grammar_bound=BOOL, text=TEXT, finish_reason=U8, input_tokens=U32,
              output_tokens=U32, weight_milli=option(U32), tokens=option(TOKENS))
USAGE = struct(fuel_per_act=many(U64), trace=many(TEXT), trace_cut=BOOL, model_calls=many(CALL),
               metrics=many(METRIC))
RECORD = struct(**PLACE, list_price=U32, budget=U32, cost=U32, opener=ROLE,
                horizon=struct(turn_limit=U32, hidden=BOOL), seeds=array(U64, 2), turns=many(TURN),
                unfinished=many(MOVE), outcome=OUTCOME, usage=array(USAGE, 2))
TRANSCRIPT = {257: struct(tournament=HASH, nonce=HASH, record=RECORD)}

# What entries say of each other, and what they are worth.
def open_announcement(folder, opening, name, key):
    origin, log_key, blob = opening.values()
    need((origin, log_key) == (name, key.hex()), f"announces {origin} and the key {log_key}")
    data = read(folder, f"blob/{blob[:2]}/{blob}", BLOB_BYTES_MAX)
    need(sha256(data).hex() == blob, f"the announcement's hash is {sha256(data).hex()}")
    return Reader(data, ANNOUNCEMENT).value

def check_match(entry, attachment, pair_index, leg):
    found = sha256(attachment).hex()
    need(found == entry["transcript_sha256"], f"the transcript's hash is {found}")
    played = Reader(attachment, TRANSCRIPT).value
    played.update(played["record"], turn_count=len(played["record"]["turns"]))
    wanted = {**entry, "pair_index": pair_index, "leg": leg}
    for name in ("tournament", *PLACE, "outcome", "turn_count"):
        found = entry[name], played[name]
        need(found == (wanted[name],) * 2, f"{name} is {found}, not {wanted[name]}")
    return played

def gains(record):
    """Returns what a match is worth to buyer and seller, times Z, and Z."""
    z = max(abs(record["budget"] - record["cost"]), 100)
    outcome = {} if record["outcome"] == "timed-out" else record["outcome"]
    if "deal" in outcome:
        price = outcome["deal"]["price"]
        return [max(-z, min(z, g)) for g in (record["budget"] - price, price - record["cost"])], z
    blamed = (outcome.get("violated") or outcome.get("faulted") or {}).get("by")
    return [-z if role == blamed else 0 for role in ("buyer", "seller")], z

def check_secrets(committed, draw, secret):
    opened, announced = draw["contributions"], committed["contributions"]
    rounds = {(each["beacon"] or {}).get("round") for each in (draw, committed)}
    need(len(opened) == len(announced) and len(rounds) == 1, "the draw is not as announced")
    pairs = [("contribution", *pair) for pair in zip(opened, announced) if pair[0]]
    for what, value, wanted in [("secret", secret, committed.get("secret_commitment")), *pairs]:
        found = value and sha256(f"arena/{what}/v1\0".encode(), bytes.fromhex(value)).hex()
        need(found == wanted, f"the {what} hashes to {found}, committed is {wanted}")

def check_entries(folder, entries, vkey):
    (name, _, key), tournament = parse_vkey(vkey), sha256(b"\0", entries[0]).hex()
    draw, matches, voids = {"contributions": [], "beacon": None}, 0, 0
    fixed = {len(entries) - 2: [4], len(entries) - 1: [5], 0: [1]}
    attachments = bundles(folder, "attachment", len(entries), 4, ATTACHMENT_BYTES_MAX)
    for index, (attachment, data) in enumerate(zip(attachments, entries)):
        try:
            reader = Reader(data, {kind: ENTRIES[kind] for kind in fixed.get(index, [2, 3])})
            entry, kind = reader.value, reader.kind
            need(index == 0 or entry["tournament"] == tournament, "is of another tournament")
            need(kind == 2 or not attachment, "has an attachment")
            if kind == 1:
                announced = open_announcement(folder, entry, name, key)
                committed = announced["draws"].get("committed", draw)
                legs = 1 + (tomllib.loads(announced["config_toml"]).get("roles", "both") == "both")
                fixed.update({1: [6]} if committed["contributions"] or committed["beacon"] else {})
                agents = [dict(a, seats=0, gains_by_z={}) for a in announced["agents"]]
            elif kind == 2:
                both, z = gains(check_match(entry, attachment, *divmod(matches, legs)))
                for agent, gain in zip((agents[number] for number in entry["agents"]), both):
                    agent["seats"] += 1
                    agent["gains_by_z"][z] = agent["gains_by_z"].get(z, 0) + gain
                matches += 1
            elif kind == 3:
                need(entry["void"]["pair_index"] * legs == matches, "voids a pair that is not next")
                voids += 1
            elif kind == 4:
                found = entry["match_count"], entry["void_count"], legs * announced["pair_count"]
                need(found == (matches, voids, matches), f"{found}, found {matches} and {voids}")
            elif kind == 5:
                check_secrets(committed, draw, entry["secret"])
            draw = entry if kind == 6 else draw
        except (ValueError, IndexError) as error:
            raise ValueError(f"entry {index}: {error}") from error
    return {"tournament": tournament, "match_count": matches, "void_count": voids, "agents": agents}

def main(folder, vkey, *form):
    try:
        size, root = open_checkpoint(read(folder, "checkpoint", BLOB_BYTES_MAX), vkey)
        entries = list(bundles(folder, "tile/entries", size, 2, ENTRY_BYTES_MAX))
        need(size >= 3, f"a log of {size} entries is not finished")
        check_tree(folder, entries, root)
        found = check_entries(folder, entries, vkey)
    except (ValueError, OSError) as error:
        sys.exit(f"{folder}: {error}")
    for agent in found["agents"]:
        total = sum((Fraction(gain, z) for z, gain in agent["gains_by_z"].items()), Fraction())
        agent["reward_sum"] = [hex(total.numerator), hex(total.denominator)]
        agent["reward_mean"] = float(total / agent["seats"]) if agent["seats"] else None
    found = {"origin": parse_vkey(vkey)[0], "size": size, "root": root.hex(), **found}
    if form:
        return print(json.dumps(found, indent=2))
    print(*(f"{name} {value}" for name, value in found.items() if name != "agents"), sep="\n")
    for agent in found["agents"]:
        print(f"{agent['name']:<24} {agent['seats']:>8} seats, mean reward {agent['reward_mean']}")

if __name__ == "__main__":
    as_said = len(sys.argv) > 2 and sys.argv[3:] in ([], ["--json"])
    main(*sys.argv[1:]) if as_said else sys.exit(__doc__)
