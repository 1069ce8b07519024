-- Who holds a token and until when: the subject that got it, and the end of its match.

ALTER TABLE matches ADD COLUMN ended_at_ns INTEGER;

UPDATE matches SET ended_at_ns = unixepoch() * 1000000000 WHERE NOT live;

ALTER TABLE credentials ADD COLUMN subject TEXT NOT NULL DEFAULT '';

CREATE INDEX credential_subjects ON credentials (subject) WHERE subject <> '';
