-- The size of the database when it was last measured for its limit, and the bytes that were deleted within its files and
-- may be used again. All processes share the row, and it outlives them.
CREATE TABLE storage_room (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  bytes INTEGER NOT NULL,
  freed INTEGER NOT NULL
) STRICT;
