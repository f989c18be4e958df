-- Revoked credentials. Every process evicts them from its cache; a row with a runtime waits until the tunnel servers have
-- disconnected that runtime's tunnel.
CREATE TABLE revocation (
  id TEXT COLLATE "C" PRIMARY KEY,
  account BIGINT NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,              -- id of a key or a user
  runtime TEXT COLLATE "C" NOT NULL DEFAULT '',   -- empty: no tunnel is left to disconnect
  at BIGINT NOT NULL
);
CREATE INDEX revocation_at ON revocation (at);
