-- Times are microseconds since 1970, UTC. Numbers of enumerations are those of projection/object.hpp.
-- Every key of tenant data begins with the account.

CREATE TABLE instance (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL,                 -- 24 hexadecimal digits, made by the first start
  restores INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE account (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL UNIQUE,
  git_provider TEXT NOT NULL DEFAULT '',
  git_api_url TEXT NOT NULL DEFAULT '',
  shared_config_repo TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE users (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  email TEXT NOT NULL DEFAULT '',
  password TEXT NOT NULL DEFAULT '',        -- PHC string of argon2id; empty: no login by password
  is_system_admin INTEGER NOT NULL DEFAULT 0,
  is_disabled INTEGER NOT NULL DEFAULT 0,
  active_account INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE member (
  account INTEGER NOT NULL,
  user_id TEXT NOT NULL,
  is_admin INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX member_user ON member (user_id, account);

CREATE TABLE team (
  account INTEGER NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL DEFAULT 'default',
  PRIMARY KEY (account, id),
  UNIQUE (account, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE team_member (
  account INTEGER NOT NULL,
  team TEXT NOT NULL,
  user_id TEXT NOT NULL,
  PRIMARY KEY (account, team, user_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE abac_rule (
  account INTEGER NOT NULL,
  id TEXT NOT NULL,
  entity_type TEXT NOT NULL,
  teams TEXT NOT NULL,        -- JSON lists
  tags TEXT NOT NULL,
  actions TEXT NOT NULL,
  attributes TEXT NOT NULL,   -- JSON: [{"name","key","value"}]
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account, id)
) STRICT, WITHOUT ROWID;

-- A key is "<id>.<secret>": the id in clear, of the secret its SHA-256. Of a runtime or of a user.
CREATE TABLE api_key (
  id TEXT PRIMARY KEY,
  account INTEGER NOT NULL,
  user_id TEXT NOT NULL DEFAULT '',
  runtime TEXT NOT NULL DEFAULT '',
  name TEXT NOT NULL DEFAULT '',
  hash BLOB NOT NULL,
  prefix TEXT NOT NULL,       -- the first characters of the secret, for lists
  scopes TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL DEFAULT 0,
  used_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX api_key_owner ON api_key (account, user_id, runtime);

CREATE TABLE session (
  hash BLOB PRIMARY KEY,
  user_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_by_user ON session (user_id);
CREATE INDEX session_expiry ON session (expires_at);

CREATE TABLE secret (
  account INTEGER NOT NULL,
  name TEXT NOT NULL,
  sealed BLOB NOT NULL,       -- nonce, AES-256-GCM
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE runtime (
  account INTEGER NOT NULL,
  name TEXT NOT NULL,
  runtime_namespace TEXT NOT NULL DEFAULT '',
  cluster TEXT NOT NULL DEFAULT '',
  arguments TEXT NOT NULL,            -- JSON: RuntimeInstallationArgs as they came
  status TEXT NOT NULL DEFAULT '{}',  -- JSON: what updateRuntimeStatus told last
  errors TEXT NOT NULL DEFAULT '[]',  -- JSON: what reportRuntimeErrors told last
  is_configuration_runtime INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL DEFAULT 0, -- last authenticated request, at most a minute late
  PRIMARY KEY (account, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE cluster (
  account INTEGER NOT NULL,
  runtime TEXT NOT NULL,
  server TEXT NOT NULL,
  name TEXT NOT NULL,
  info TEXT NOT NULL,                 -- JSON: ClusterInfoInput
  connection INTEGER NOT NULL DEFAULT 0,  -- 0 Unknown, 1 Successful, 2 Failed
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (account, runtime, server)
) STRICT, WITHOUT ROWID;
CREATE INDEX cluster_name ON cluster (account, name, runtime, server);

CREATE TABLE git_source_permission (
  account INTEGER NOT NULL,
  runtime TEXT NOT NULL,
  source_namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  permissions TEXT NOT NULL,          -- JSON: [{"userId","read","write"}]
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (account, runtime, source_namespace, name)
) STRICT, WITHOUT ROWID;

-- The reporters that were heard of: position counts batches that held their events, at most once a second.
CREATE TABLE reporter (
  account INTEGER NOT NULL,
  runtime TEXT NOT NULL,
  name TEXT NOT NULL,                 -- X-Reporter; "application" or "resource" without it
  position INTEGER NOT NULL DEFAULT 0,
  sequence INTEGER NOT NULL DEFAULT 0,
  resync TEXT NOT NULL DEFAULT '',
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (account, runtime, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE object (
  id INTEGER PRIMARY KEY,
  account INTEGER NOT NULL,
  runtime TEXT NOT NULL,
  origin INTEGER NOT NULL,
  owner_uid TEXT NOT NULL,
  cluster TEXT NOT NULL,
  api_group TEXT NOT NULL,
  kind TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  uid TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  manager_name TEXT NOT NULL,
  manager_namespace TEXT NOT NULL,
  manager_uid TEXT NOT NULL,
  destination TEXT NOT NULL,
  revision TEXT NOT NULL,
  sync INTEGER NOT NULL,
  health INTEGER NOT NULL,
  health_message TEXT NOT NULL,
  phase INTEGER NOT NULL,
  history_id INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  presence INTEGER NOT NULL,
  entity TEXT NOT NULL,
  labels_digest BLOB NOT NULL,
  body_digest BLOB NOT NULL,
  UNIQUE (account, runtime, origin, owner_uid, cluster, api_group, kind, namespace, name)
) STRICT;
-- Pages in order of names: conditions are checked in the index alone.
CREATE INDEX object_name ON object (account, kind, name, id, presence, origin, api_group, runtime, namespace, sync, health, phase, entity);
CREATE INDEX object_gone ON object (account, kind) WHERE presence = 1;
CREATE INDEX object_manager ON object (account, runtime, manager_namespace, manager_name, kind, name, id);
CREATE INDEX object_uid ON object (account, uid);

-- Codecs: 0 plain, 1 zstd, 2 zstd with the dictionary of 2026-11. The text is the parts of ObjectBody, each behind its
-- length (storage/body_codec.hpp).
CREATE TABLE body (
  object INTEGER PRIMARY KEY,
  codec INTEGER NOT NULL,
  size INTEGER NOT NULL,              -- unpacked
  packed BLOB NOT NULL
) STRICT;

CREATE TABLE label (
  account INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  object INTEGER NOT NULL,
  PRIMARY KEY (account, key, value, object)
) STRICT, WITHOUT ROWID;
CREATE INDEX label_object ON label (object);

CREATE TABLE timeline (
  object INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  account INTEGER NOT NULL,
  at INTEGER NOT NULL,
  step INTEGER NOT NULL,
  revision TEXT NOT NULL,
  sync INTEGER NOT NULL,
  health INTEGER NOT NULL,
  phase INTEGER NOT NULL,
  commit_at INTEGER NOT NULL,
  author TEXT NOT NULL,
  message TEXT NOT NULL,
  event_id TEXT NOT NULL,
  PRIMARY KEY (object, sequence)
) STRICT, WITHOUT ROWID;
-- Deployments of a time are counted in the index alone.
CREATE INDEX timeline_account ON timeline (account, at, health, phase, commit_at);

CREATE TABLE app_release (
  object INTEGER NOT NULL,
  history_id INTEGER NOT NULL,
  account INTEGER NOT NULL,
  revision TEXT NOT NULL,
  operation_revision TEXT NOT NULL,
  author TEXT NOT NULL,
  message TEXT NOT NULL,
  commit_at INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  sync INTEGER NOT NULL,
  health INTEGER NOT NULL,
  phase INTEGER NOT NULL,
  initiator TEXT NOT NULL,
  images TEXT NOT NULL,
  was_degraded INTEGER NOT NULL,
  PRIMARY KEY (object, history_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX app_release_account ON app_release (account, started_at, object, history_id);

-- What pages have to hear of: numbered by each process, without gaps.
CREATE TABLE change (
  instance TEXT NOT NULL,
  no INTEGER NOT NULL,
  account INTEGER NOT NULL,
  kind TEXT NOT NULL,
  object INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (instance, no)
) STRICT, WITHOUT ROWID;

-- Events that could not be taken as they were, for people.
CREATE TABLE quarantine (
  account INTEGER NOT NULL,
  at INTEGER NOT NULL,
  no INTEGER NOT NULL,
  runtime TEXT NOT NULL,
  event_id TEXT NOT NULL,
  why TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (account, at, no)
) STRICT, WITHOUT ROWID;

CREATE TABLE image (
  account INTEGER NOT NULL,
  name TEXT NOT NULL,                 -- full name with tag
  id TEXT NOT NULL,
  data TEXT NOT NULL,                 -- JSON: ImageBinaryInput with its patches
  registry TEXT NOT NULL DEFAULT '{}',
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (account, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX image_id ON image (account, id);

CREATE TABLE annotation (
  account INTEGER NOT NULL,
  entity_type TEXT NOT NULL,
  entity TEXT NOT NULL,               -- an image's full name, or the key of a Kubernetes object
  type TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,                -- JSON
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (account, entity_type, entity, type, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  account INTEGER NOT NULL,
  at INTEGER NOT NULL,
  no INTEGER NOT NULL,
  caller TEXT NOT NULL,
  peer TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  result TEXT NOT NULL,
  digest BLOB NOT NULL,
  PRIMARY KEY (account, at, no)
) STRICT, WITHOUT ROWID;
