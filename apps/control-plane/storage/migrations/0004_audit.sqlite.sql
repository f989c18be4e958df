-- The audit log: who the caller is, apart from its name, why a request was refused, and the request's id.
ALTER TABLE audit ADD COLUMN caller_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN detail TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
