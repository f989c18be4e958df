-- Objects whose events users have asked for again. Reporters are told until an event of the object arrives.
CREATE TABLE report_request (
  account INTEGER NOT NULL,
  runtime TEXT NOT NULL,
  uid TEXT NOT NULL,          -- of the Application, or of an object of mode resource in it
  application TEXT NOT NULL,  -- uid of the Application
  number INTEGER NOT NULL,    -- time of the request in microseconds; a later one has a higher number
  sequence INTEGER NOT NULL,  -- of the object's last event at that time
  closed INTEGER NOT NULL,    -- 1: an event has arrived since
  PRIMARY KEY (account, runtime, uid)
) STRICT, WITHOUT ROWID;
