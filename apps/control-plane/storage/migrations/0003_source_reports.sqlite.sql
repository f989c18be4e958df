-- Payloads of Git webhooks, as CloudEvents of event sources. The texts are those of a body whose `live` is the payload.
CREATE TABLE event_payload (
  account INTEGER NOT NULL,
  runtime TEXT NOT NULL,
  source TEXT NOT NULL,               -- the EventSource
  id TEXT NOT NULL,                   -- of the CloudEvent
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  subject TEXT NOT NULL,              -- the event's name in the EventSource
  repository TEXT NOT NULL,
  initiator TEXT NOT NULL,
  codec INTEGER NOT NULL,
  size INTEGER NOT NULL,              -- unpacked
  packed BLOB NOT NULL,
  PRIMARY KEY (account, runtime, source, id)
) STRICT;
CREATE INDEX event_payload_at ON event_payload (account, runtime, at);

-- The newest error that was reported about an event source or a sensor.
CREATE TABLE source_error (
  account INTEGER NOT NULL,
  runtime TEXT NOT NULL,
  api_group TEXT NOT NULL,
  kind TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT NOT NULL,
  at INTEGER NOT NULL,
  message TEXT NOT NULL,
  PRIMARY KEY (account, runtime, api_group, kind, namespace, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX source_error_at ON source_error (account, runtime, at);
