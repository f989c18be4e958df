-- Service accounts: callers with keys and without a password, each in one account.
CREATE TABLE service_account (
  account INTEGER NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  is_admin INTEGER NOT NULL DEFAULT 0,
  is_disabled INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account, id),
  UNIQUE (account, name)
) STRICT, WITHOUT ROWID;

-- Invitations that nobody has accepted yet. A new user gets the id that its invitation has.
CREATE TABLE invitation (
  account INTEGER NOT NULL,
  user_id TEXT NOT NULL,
  hash BLOB NOT NULL,                 -- SHA-256 of the token
  name TEXT NOT NULL DEFAULT '',      -- proposed name of the user
  email TEXT NOT NULL,
  is_admin INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (account, user_id),
  UNIQUE (hash)
) STRICT, WITHOUT ROWID;
