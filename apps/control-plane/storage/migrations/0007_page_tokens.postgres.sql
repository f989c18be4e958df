-- Tokens with which the page of a session asks one runtime.
CREATE TABLE page_token (
  hash BYTEA PRIMARY KEY,    -- SHA-256
  account BIGINT NOT NULL,
  session BYTEA NOT NULL,    -- hash of the session; the token ends with it
  runtime TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX page_token_expiry ON page_token (expires_at);
