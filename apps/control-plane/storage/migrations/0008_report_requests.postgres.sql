-- Objects whose events users have asked for again. Reporters are told until an event of the object arrives.
CREATE TABLE report_request (
  account BIGINT NOT NULL,
  runtime TEXT COLLATE "C" NOT NULL,
  uid TEXT COLLATE "C" NOT NULL,          -- of the Application, or of an object of mode resource in it
  application TEXT COLLATE "C" NOT NULL,  -- uid of the Application
  number BIGINT NOT NULL,                 -- time of the request in microseconds; a later one has a higher number
  sequence BIGINT NOT NULL,               -- of the object's last event at that time
  closed BIGINT NOT NULL,                 -- 1: an event has arrived since
  PRIMARY KEY (account, runtime, uid)
);
