#include "common/store/database.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "common/sqlite/file_guard.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"

namespace gitops::store {
namespace {

// Limit of the silence of PostgreSQL during a step of a migration.
constexpr std::chrono::milliseconds kMigrationSilence = std::chrono::hours(24);

}  // namespace

// State that the pools' threads and the loops share.
class Database::State {
 public:
  State(Options options, Metrics& metrics)
      : options_(std::move(options)),
        guard_(options_.location.engine == Engine::sqlite ? options_.location.path : std::string(),
               "database"),
        writer_pool_({.name = options_.name + "-write",
                      .threads = 1,
                      .max_queued = 1024,
                      .max_per_key = 1024},
                     metrics),
        reader_pool_({.name = options_.name + "-read",
                      .threads = options_.readers,
                      .max_queued = 1024,
                      .max_per_key = 1024},
                     metrics) {}

  Result<void> open(std::span<const Migration> migrations,
                    const std::function<void(std::string_view)>& progress) {
    if (options_.location.engine == Engine::sqlite) {
      if (auto locked = guard_.lock(); !locked) return std::unexpected(error_of(locked.error()));
      if (auto made = guard_.prepare(); !made) return std::unexpected(error_of(made.error()));
    }
    if (options_.location.engine == Engine::postgres) {
      // Most starts have nothing to migrate, and then a server that falls silent is an outage as at any other time.
      auto writer = connect(Access::read_write);
      if (!writer) return std::unexpected(std::move(writer.error()));
      const auto is_current = is_migrated(**writer, migrations);
      if (!is_current) return std::unexpected(is_current.error());
      if (*is_current) {
        writer_ = std::move(*writer);
        return {};
      }
    }
    auto migrating = connect(Access::read_write, kMigrationSilence);
    if (!migrating) return std::unexpected(std::move(migrating.error()));
    writer_ = std::move(*migrating);
    if (auto migrated = migrate(*writer_, migrations, progress); !migrated) return migrated;
    if (options_.location.engine == Engine::sqlite) return {};
    // The silence of a server counts from now on.
    auto writer = connect(Access::read_write);
    if (!writer) return std::unexpected(std::move(writer.error()));
    writer_ = std::move(*writer);
    return {};
  }

  // Returns the writer's connection, and replaces a lost one. The writer's thread only.
  Result<Connection*> writer() {
    if (writer_ && writer_->is_usable()) return writer_.get();
    writer_.reset();
    auto opened = connect(Access::read_write);
    if (!opened) return std::unexpected(std::move(opened.error()));
    writer_ = std::move(*opened);
    return writer_.get();
  }

  struct TakenReader {
    std::unique_ptr<Connection> connection;
    bool is_new;
  };
  // Takes a reader's connection, for one thread of the pool at a time.
  Result<TakenReader> take_reader() {
    {
      const std::lock_guard lock(mutex_);
      if (is_in_memory()) return TakenReader{std::move(writer_), true};
      if (!idle_.empty()) {
        auto taken = std::move(idle_.back());
        idle_.pop_back();
        return TakenReader{std::move(taken), false};
      }
    }
    auto opened = connect(Access::read_only);
    if (!opened) return std::unexpected(std::move(opened.error()));
    return TakenReader{std::move(*opened), true};
  }

  void give_back(std::unique_ptr<Connection> connection) {
    if (!connection->is_usable()) return;
    const std::lock_guard lock(mutex_);
    if (is_in_memory()) {
      writer_ = std::move(connection);
      return;
    }
    idle_.push_back(std::move(connection));
  }

  void close(Clock::duration grace) {
    reader_pool_.stop(grace);
    if (writer_pool_.stop(grace) > 0) return;
    const std::lock_guard lock(mutex_);
    idle_.clear();
    writer_.reset();
    guard_.unlock();
  }

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] bool is_in_memory() const {
    return options_.location.engine == Engine::sqlite && options_.location.path.empty();
  }
  WorkerPool& writer_pool() { return writer_pool_; }
  WorkerPool& reader_pool() { return reader_pool_; }

 private:
  // `silence` replaces the limit of the location.
  Result<std::unique_ptr<Connection>> connect(
      Access access, std::optional<std::chrono::milliseconds> silence = std::nullopt) {
    auto location = options_.location;
    location.answer_limit = silence.value_or(location.answer_limit);
    if (location.engine == Engine::sqlite) {
      return open_sqlite(
          location.path, access,
          access == Access::read_write ? options_.cache_bytes : options_.cache_bytes / 4);
    }
    auto opened = open_postgres(location, options_.name);
    if (!opened) return std::unexpected(std::move(opened.error()));
    return std::unique_ptr<Connection>(std::move(*opened));
  }

  Options options_;
  sqlite::FileGuard guard_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::unique_ptr<Connection> writer_;
  WorkerPool writer_pool_;
  WorkerPool reader_pool_;
};

Database::Database(Options options, Metrics& metrics)
    : state_(std::make_shared<State>(std::move(options), metrics)) {}

Database::~Database() {
  close(std::chrono::seconds(2));
}

Result<void> Database::open(std::span<const Migration> migrations,
                            const std::function<void(std::string_view)>& progress) {
  return state_->open(migrations, progress);
}

Engine Database::engine() const {
  return state_->options().location.engine;
}

void Database::close(Clock::duration grace) {
  state_->close(grace);
}

Database::Reader::Reader(std::shared_ptr<State> state, std::unique_ptr<Connection> connection)
    : state_(std::move(state)), connection_(std::move(connection)) {}

Database::Reader::~Reader() {
  if (connection_) state_->give_back(std::move(connection_));
}

// Returns the pool of readers. A database in memory has one connection, so its readers use the writer's pool.
WorkerPool& Database::reader_pool(State& state) {
  return state.is_in_memory() ? state.writer_pool() : state.reader_pool();
}

WorkerPool& Database::writer_pool(State& state) {
  return state.writer_pool();
}

Deadline Database::reader_deadline(const State& state, Deadline deadline) {
  return std::min(deadline, Clock::now() + state.options().read_limit);
}

Result<Database::Reader> Database::reader(const std::shared_ptr<State>& state,
                                          const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    auto taken = state->take_reader();
    if (!taken) return std::unexpected(std::move(taken.error()));
    Reader reader(state, std::move(taken->connection));
    const std::stop_callback on_stop(stop, [&reader] { reader.connection().interrupt(); });
    auto begun = begin_reading(reader.connection());
    if (begun) return reader;
    if (taken->is_new || reader.connection().is_usable()) {
      return std::unexpected(std::move(begun.error()));
    }
  }
  return fail(ErrorCode::timeout, "interrupted");
}

Result<Connection*> Database::writer(State& state) {
  return state.writer();
}

Result<void> Database::begin_reading(Connection& connection) {
  return connection.run_script(connection.engine() == Engine::sqlite
                                   ? "BEGIN"
                                   : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
}

void Database::end_reading(Connection& connection) {
  // A failure is harmless: the next use of the connection detects it.
  static_cast<void>(connection.run_script("ROLLBACK"));
}

}  // namespace gitops::store
