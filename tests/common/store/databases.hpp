#pragma once

#include <ostream>
#include <string>

#include "common/store/connection.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"

namespace gitops::test {

// An empty database of either engine, for suites that run each case on both.
class TestDatabase {
 public:
  explicit TestDatabase(store::Engine engine) {
    location_.engine = engine;
    if (engine == store::Engine::sqlite) {
      location_.path = folder_ / "store.db";
      write_file(location_.path, "");
    } else {
      location_.dsn = PostgresServer::shared().new_database();
    }
  }
  [[nodiscard]] const store::Location& location() const { return location_; }

 private:
  TempDir folder_;
  store::Location location_;
};

inline std::string engine_name(store::Engine engine) {
  return engine == store::Engine::sqlite ? "Sqlite" : "Postgres";
}

}  // namespace gitops::test
