-- Service accounts: callers with keys and without a password, each in one account.
CREATE TABLE service_account (
  account BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  is_admin BIGINT NOT NULL DEFAULT 0,
  is_disabled BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (account, id),
  UNIQUE (account, name)
);

-- Invitations that nobody has accepted yet. A new user gets the id that its invitation has.
CREATE TABLE invitation (
  account BIGINT NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  hash BYTEA NOT NULL,                 -- SHA-256 of the token
  name TEXT COLLATE "C" NOT NULL DEFAULT '',      -- proposed name of the user
  email TEXT COLLATE "C" NOT NULL,
  is_admin BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (account, user_id),
  UNIQUE (hash)
);
