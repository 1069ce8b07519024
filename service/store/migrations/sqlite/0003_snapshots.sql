-- The state of a match at one version, its last snapshot: a cache of what its log folds to. `format` is that of
-- service.store.state_json; a row of another format is passed over and replaced. All of `state` is sealed.

CREATE TABLE snapshots (
    match_id TEXT PRIMARY KEY REFERENCES matches,
    version INTEGER NOT NULL,
    format INTEGER NOT NULL,
    state BLOB NOT NULL
) STRICT;
