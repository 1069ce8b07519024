-- The record of every match. Hashes are SHA-256, instants nanoseconds on the service's line of time.

CREATE TABLE matches (
    match_id TEXT PRIMARY KEY,
    version INTEGER NOT NULL CHECK (version > 0),
    due_ns INTEGER,
    live INTEGER NOT NULL CHECK (live IN (0, 1)),
    invite_hash BLOB UNIQUE,
    created_unix_s INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT, WITHOUT ROWID;

CREATE INDEX live_matches ON matches (due_ns) WHERE live;

-- Steps and commands lie in the order of writing, unlike the rest, so that a commit for many matches touches few pages.

-- The events of each version, as service.store.event_json writes them.
CREATE TABLE steps (
    match_id TEXT NOT NULL REFERENCES matches,
    version INTEGER NOT NULL CHECK (version > 0),
    events TEXT NOT NULL,
    PRIMARY KEY (match_id, version)
) STRICT;

-- The outcome of each command, so that a repeat gets the same. `refusal` and `receipt` are JSON.
CREATE TABLE commands (
    match_id TEXT NOT NULL REFERENCES matches,
    sender TEXT NOT NULL,
    command_id TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    version INTEGER NOT NULL,
    refusal TEXT,
    receipt TEXT NOT NULL,
    PRIMARY KEY (match_id, sender, command_id)
) STRICT;

-- What fixes the tiles of each match with its public commitments: secret until the match is over.
CREATE TABLE deals (
    match_id TEXT PRIMARY KEY REFERENCES matches,
    rules_hash BLOB NOT NULL,
    secret BLOB NOT NULL,
    entropy_one BLOB NOT NULL,
    entropy_two BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- What a token is good for. Only its hash is known.
CREATE TABLE credentials (
    token_hash BLOB PRIMARY KEY,
    match_id TEXT NOT NULL REFERENCES matches,
    audience TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What each request to create or join got, so that a repeat gets the same.
CREATE TABLE seat_requests (
    request_id TEXT PRIMARY KEY,
    match_id TEXT NOT NULL REFERENCES matches,
    audience TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The fault ledger: spans in which the service could not stamp, store or show a command properly.
CREATE TABLE faults (
    fault_id INTEGER PRIMARY KEY,
    cause TEXT NOT NULL,
    match_id TEXT,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER NOT NULL,
    evidence TEXT NOT NULL
) STRICT;

CREATE INDEX fault_ends ON faults (to_ns);

-- Facts about the service itself, such as the anchor of its line of time.
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
