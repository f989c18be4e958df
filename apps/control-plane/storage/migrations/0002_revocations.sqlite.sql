-- Revoked credentials. Every process evicts them from its cache; a row with a runtime waits until the tunnel servers have
-- disconnected that runtime's tunnel.
CREATE TABLE revocation (
  id TEXT PRIMARY KEY,
  account INTEGER NOT NULL,
  subject TEXT NOT NULL,              -- id of a key or a user
  runtime TEXT NOT NULL DEFAULT '',   -- empty: no tunnel is left to disconnect
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX revocation_at ON revocation (at);
