-- Works with services from schema 1 on.
-- The state of a match at one version, its last snapshot: a cache of what its log folds to. `format` is that of
-- service.store.state_json; a row of another format is passed over and replaced. All of `state` is sealed. As steps,
-- rows are written only together with a lock on their match.

CREATE TABLE snapshots (
    match_id text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    format integer NOT NULL,
    state bytea NOT NULL
);
