-- Works with services from schema 1 on.
-- The record of every match. Hashes are SHA-256, instants nanoseconds on the service's line of time.

CREATE TABLE matches (
    match_id text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL CHECK (version > 0),
    due_ns bigint,
    live boolean NOT NULL,
    invite_hash bytea UNIQUE,
    ended_at_ns bigint,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX live_matches ON matches (due_ns NULLS FIRST, match_id) WHERE live;

-- Steps and commands are written only together with a lock on their match, so they need no foreign key.

-- The events of each version, as service.store.event_json writes them.
CREATE TABLE steps (
    match_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    events text NOT NULL,
    PRIMARY KEY (match_id, version)
);

-- The outcome of each command, so that a repeat gets the same. `refusal` and `receipt` are JSON.
CREATE TABLE commands (
    match_id text COLLATE "C" NOT NULL,
    sender text NOT NULL,
    command_id text COLLATE "C" NOT NULL,
    body_hash bytea NOT NULL,
    version bigint NOT NULL,
    refusal text,
    receipt text NOT NULL,
    PRIMARY KEY (match_id, sender, command_id)
);

-- What fixes the tiles of each match with its public commitments: secret until the match is over, and sealed.
CREATE TABLE deals (
    match_id text COLLATE "C" PRIMARY KEY REFERENCES matches,
    rules_hash bytea NOT NULL,
    secret bytea NOT NULL,
    entropy_one bytea NOT NULL,
    entropy_two bytea NOT NULL
);

-- What a token is good for. Only its hash is known.
CREATE TABLE credentials (
    token_hash bytea PRIMARY KEY,
    match_id text COLLATE "C" NOT NULL REFERENCES matches,
    audience text NOT NULL,
    subject text NOT NULL
);

CREATE INDEX credential_subjects ON credentials (subject) WHERE subject <> '';

-- What each request to create or join got, so that a repeat gets the same.
CREATE TABLE seat_requests (
    request_id text COLLATE "C" PRIMARY KEY,
    match_id text COLLATE "C" NOT NULL REFERENCES matches,
    audience text NOT NULL
);

-- The fault ledger. `replica_id` says who found it. Rows are added one transaction at a time, in the order of fault_id.
CREATE TABLE faults (
    fault_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    replica_id text NOT NULL,
    cause text NOT NULL,
    match_id text,
    from_ns bigint NOT NULL,
    to_ns bigint NOT NULL,
    evidence text NOT NULL
);

CREATE INDEX fault_ends ON faults (to_ns);

-- The processes that serve, each with its last heartbeat: at at_ns every command stamped before closed_ns was handled.
-- Only a replica whose row has this epoch and is live or leaving may move a match. seen_at is this database's own clock.
CREATE TABLE replicas (
    replica_id text PRIMARY KEY,
    epoch bigint NOT NULL,
    state text NOT NULL CHECK (state IN ('live', 'leaving', 'retired', 'fenced')),
    at_ns bigint NOT NULL,
    closed_ns bigint NOT NULL,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Facts about the service itself, such as the id of its sealing key.
CREATE TABLE meta (
    key text PRIMARY KEY,
    value text NOT NULL
);
