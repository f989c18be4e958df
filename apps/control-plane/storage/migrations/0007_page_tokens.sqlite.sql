-- Tokens with which the page of a session asks one runtime.
CREATE TABLE page_token (
  hash BLOB PRIMARY KEY,     -- SHA-256
  account INTEGER NOT NULL,
  session BLOB NOT NULL,     -- hash of the session; the token ends with it
  runtime TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX page_token_expiry ON page_token (expires_at);
