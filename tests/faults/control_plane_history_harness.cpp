#include "faults/control_plane_history_harness.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <stdexcept>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"
#include "control-plane/storage/body_row.hpp"
#include "control-plane/storage/object_row.hpp"
#include "support/wait.hpp"

namespace gitops::test {
namespace {

using store::Engine;
using store::Statement;

constexpr std::size_t kDiskKib = 192UL * 1024;
constexpr std::int64_t kCacheBytes = 8 << 20;
constexpr std::uint64_t kFileLimit = 4096;
constexpr auto kRecoveryLimit = std::chrono::minutes(1);
constexpr const char* kAccount = "acme";

constexpr std::string_view kSelect = "SELECT o.id, ";
constexpr std::string_view kFrom =
    ", b.codec, b.size, b.packed FROM object o LEFT JOIN body b ON b.object = o.id ORDER BY o.id";
constexpr Statement kObjects{
    .name = "history.objects",
    .sql = store::joined<kSelect, control_plane_server::kObjectColumnsOfO, kFrom>};
constexpr std::size_t kBodyColumn = 30;
constexpr Statement kTimeline{
    .name = "history.timeline",
    .sql = "SELECT object, sequence FROM timeline ORDER BY object, sequence"};

template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace

ControlPlaneHistoryHarness::ControlPlaneHistoryHarness(Engine engine)
    : disk_(std::make_unique<TinyDisk>(kDiskKib)), http_(std::uint16_t{0}, "HTTP/1.1 200") {
  if (!disk_->is_file_system()) disk_.reset();
  // A limit of a process on its files is inherited with this.
  std::signal(SIGXFSZ, SIG_IGN);
  const auto place = disk_ ? disk_->path() : folder_.path();
  location_.engine = engine;
  if (engine == Engine::sqlite) {
    location_.path = place / "control-plane.db";
    return;
  }
  // The sizes leave room on the disk. Each recovery begins a timeline with a segment of its own, which
  // stays: segments of 16 MiB filled the disk in nine rounds.
  postgres_ = std::make_unique<PostgresServer>(
      disk_ ? place : "/tmp", std::vector<std::string>{"max_wal_size=48MB", "min_wal_size=32MB"},
      1);
  location_.dsn = postgres_->new_database();
  // The message by which PostgreSQL acknowledges a COMMIT.
  commits_ = std::make_unique<AnswerProxy>(folder_ / ".s.PGSQL.5432", std::string("C\0\0\0\x0b"
                                                                                  "COMMIT\0",
                                                                                  12));
  commits_->forward_to(postgres_->socket());
}

void ControlPlaneHistoryHarness::start() {
  auto url = location_.path;
  if (is_postgres()) {
    url = location_.dsn;
    const auto socket = postgres_->socket().parent_path().string();
    url.replace(url.find(socket), socket.size(), folder_.path().string());
  }
  program_.emplace(url);
  program_->add_account(kAccount);
  program_->add_user("ann", kAccount, {"--admin"});
  key_ = program_->create_key("ann", kAccount);
  restart();
}

void ControlPlaneHistoryHarness::restart() {
  program_->start();
  http_.forward_to(program_->port());
}

std::string ControlPlaneHistoryHarness::register_runtime(const std::string& name) {
  return program_->register_runtime(key_, name);
}

std::string ControlPlaneHistoryHarness::end_of_log() const {
  constexpr std::size_t kMax = 20'000;
  const auto log = program_->log();
  const auto end = log.substr(log.size() - std::min(log.size(), kMax));
  return postgres_ ? end + "\nPostgreSQL:\n" + postgres_->end_of_log() : end;
}

void ControlPlaneHistoryHarness::start_database() {
  if (!postgres_->running()) postgres_->start();
}

void ControlPlaneHistoryHarness::fill_disk() {
  if (!disk_) return is_postgres() ? void() : limit_files();
  if (!is_postgres()) {
    // Otherwise SQLite would write into its log from the start, without new space.
    static_cast<void>(connect(true)->run_script("PRAGMA wal_checkpoint(TRUNCATE)"));
  }
  disk_->fill();
}

void ControlPlaneHistoryHarness::set_file_limit(std::uint64_t bytes) {
  if (is_postgres() || !program_->process().running()) return;
  rlimit limit{};
  ::prlimit(program_->process().pid(), RLIMIT_FSIZE, nullptr, &limit);
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  ::prlimit(program_->process().pid(), RLIMIT_FSIZE, &limit, nullptr);
}

void ControlPlaneHistoryHarness::limit_files() {
  set_file_limit(kFileLimit);
}

void ControlPlaneHistoryHarness::make_room() {
  if (disk_) disk_->clear();
  set_file_limit(RLIM_INFINITY);
  // PostgreSQL ends when it cannot write its log.
  if (is_postgres()) start_database();
}

void ControlPlaneHistoryHarness::end_faults() {
  lose_answers(0);
  if (commits_) lose_commits(0);
  make_room();
  if (!program_->process().running()) restart();
}

void ControlPlaneHistoryHarness::back_up(Restore how) {
  if (how == Restore::backup) {
    std::filesystem::remove(location_.path + ".backup");
    program_->command({"backup", "--to=" + location_.path + ".backup"});
  } else if (is_postgres()) {
    stop_database();
    postgres_->save_data();
    start_database();
  } else {
    kill();
    copy_database_file(location_.path, location_.path + ".saved");
    restart();
  }
}

void ControlPlaneHistoryHarness::roll_back(Restore how) {
  kill();
  if (how == Restore::backup) {
    program_->command({"restore", "--from=" + location_.path + ".backup"});
  } else if (is_postgres()) {
    stop_database();
    postgres_->put_data_back();
    if (how == Restore::recovery) postgres_->recover_at_start();
    start_database();
  } else {
    copy_database_file(location_.path + ".saved", location_.path);
  }
  restart();
}

void ControlPlaneHistoryHarness::copy_database_file(const std::string& from,
                                                    const std::string& to) {
  for (const auto* const suffix : {"", "-wal"}) {
    std::filesystem::remove(to + suffix);
    if (std::filesystem::exists(from + suffix)) {
      std::filesystem::copy_file(from + suffix, to + suffix);
    }
  }
  std::filesystem::remove(to + "-shm");
}

std::unique_ptr<store::Connection> ControlPlaneHistoryHarness::connect(bool for_writing) const {
  if (location_.engine == Engine::sqlite) {
    return value_or_throw(store::open_sqlite(
        location_.path, for_writing ? store::Access::read_write : store::Access::read_only,
        kCacheBytes));
  }
  // It may be recovering.
  std::unique_ptr<store::Connection> connection;
  require_until(
      [&] {
        auto opened = store::open_postgres(location_, "history");
        if (opened) connection = std::move(*opened);
        return opened.has_value();
      },
      kRecoveryLimit, "PostgreSQL");
  return connection;
}

std::vector<ControlPlaneHistoryHarness::Row> ControlPlaneHistoryHarness::rows() const {
  const auto connection = connect();
  const auto begun = connection->run_script(
      location_.engine == Engine::sqlite ? "BEGIN"
                                         : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  if (!begun) throw std::runtime_error(begun.error().message);
  const auto objects = value_or_throw(connection->run(kObjects));
  const auto timeline = value_or_throw(connection->run(kTimeline));
  std::vector<Row> rows;
  std::size_t milestone = 0;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    auto& row = rows.emplace_back(Row{.state = control_plane_server::object_state(objects, i)});
    auto body = value_or_throw(control_plane_server::body_of_row(objects, i, kBodyColumn));
    if (body) row.body = std::move(*body);
    for (; milestone < timeline.size() && timeline.number(milestone, 0) <= row.state.id;
         ++milestone) {
      row.milestones.push_back(static_cast<std::uint64_t>(timeline.number(milestone, 1)));
    }
  }
  return rows;
}

std::vector<std::string> ControlPlaneHistoryHarness::applications_at_control_plane(
    const std::string& runtime) const {
  const auto reply = program_->graphql(
      key_,
      "query($filters: ApplicationsFilterArgs){applications(filters: $filters, pagination: {first: "
      "1000}){edges{node{metadata{name}}}}}",
      nlohmann::json{{"filters", {{"runtime", runtime}}}}.dump());
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  if (!reply.ok() || !json.is_object() || json.contains("errors")) {
    throw std::runtime_error("no Applications are shown: " + reply.body);
  }
  std::vector<std::string> names;
  for (const auto& edge : json["data"]["applications"]["edges"]) {
    names.push_back(edge["node"]["metadata"]["name"]);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace gitops::test
