-- Single sign-on. Users of identity providers: the issuer and its name for the user, which it never gives to another one.
CREATE TABLE identity (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  user_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX identity_by_user ON identity (user_id);

-- Logins that began: each row is taken once.
CREATE TABLE sso_login (
  state BLOB NOT NULL,       -- SHA-256
  provider TEXT NOT NULL,
  browser BLOB NOT NULL,     -- SHA-256 of the cookie
  return_to TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (state)
) STRICT, WITHOUT ROWID;
CREATE INDEX sso_login_expiry ON sso_login (expires_at);

-- The provider at which a session began; empty: by password.
ALTER TABLE session ADD COLUMN provider TEXT NOT NULL DEFAULT '';
