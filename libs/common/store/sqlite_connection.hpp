#pragma once

#include <memory>

#include "common/store/connection.hpp"

namespace gitops::store {

enum class Access { read_write, read_only };

// Opens SQLite's file for the store: WAL, synchronous=FULL, 4 KiB pages, incremental auto-vacuum, foreign keys off, a
// busy timeout of 5 s. The file must exist (sqlite::FileGuard makes it). `cache_bytes` is the size of the page cache.
Result<std::unique_ptr<Connection>> open_sqlite(const std::string& path, Access access,
                                                std::int64_t cache_bytes);

}  // namespace gitops::store
