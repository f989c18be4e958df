-- Payloads of Git webhooks, as CloudEvents of event sources. The texts are those of a body whose `live` is the payload.
CREATE TABLE event_payload (
  account BIGINT NOT NULL,
  runtime TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,               -- the EventSource
  id TEXT COLLATE "C" NOT NULL,                   -- of the CloudEvent
  at BIGINT NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,              -- the event's name in the EventSource
  repository TEXT COLLATE "C" NOT NULL,
  initiator TEXT COLLATE "C" NOT NULL,
  codec BIGINT NOT NULL,
  size BIGINT NOT NULL,              -- unpacked
  packed BYTEA NOT NULL,
  PRIMARY KEY (account, runtime, source, id)
);
CREATE INDEX event_payload_at ON event_payload (account, runtime, at);

-- The newest error that was reported about an event source or a sensor.
CREATE TABLE source_error (
  account BIGINT NOT NULL,
  runtime TEXT COLLATE "C" NOT NULL,
  api_group TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  namespace TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  message TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (account, runtime, api_group, kind, namespace, name)
);
CREATE INDEX source_error_at ON source_error (account, runtime, at);
ALTER TABLE event_payload ALTER COLUMN packed SET STORAGE EXTERNAL;
