-- Single sign-on. Users of identity providers: the issuer and its name for the user, which it never gives to another one.
CREATE TABLE identity (
  issuer TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX identity_by_user ON identity (user_id);

-- Logins that began: each row is taken once.
CREATE TABLE sso_login (
  state BYTEA NOT NULL,      -- SHA-256
  provider TEXT COLLATE "C" NOT NULL,
  browser BYTEA NOT NULL,    -- SHA-256 of the cookie
  return_to TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (state)
);
CREATE INDEX sso_login_expiry ON sso_login (expires_at);

-- The provider at which a session began; empty: by password.
ALTER TABLE session ADD COLUMN provider TEXT COLLATE "C" NOT NULL DEFAULT '';
