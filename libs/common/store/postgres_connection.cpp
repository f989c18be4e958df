#include "common/store/postgres_connection.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <libpq-fe.h>
#include <optional>
#include <set>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/core/small_file.hpp"

namespace gitops::store {
namespace {

// Types of the catalogue: src/include/catalog/pg_type.dat of PostgreSQL.
constexpr Oid kBool = 16;
constexpr Oid kBytea = 17;
constexpr Oid kInt8 = 20;
constexpr Oid kInt2 = 21;
constexpr Oid kInt4 = 23;
constexpr Oid kText = 25;
constexpr Oid kNumeric = 1700;

constexpr int kMinVersion = 140'000;
constexpr int kMaxUnread = 16;  // parts that an idle connection has received
constexpr std::array<std::pair<const char*, const char*>, 3> kDurable{
    {{"fsync", "on"}, {"full_page_writes", "on"}, {"server_encoding", "UTF8"}}};

struct EndConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct EndResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Handle = std::unique_ptr<PGconn, EndConnection>;
using ResultHandle = std::unique_ptr<PGresult, EndResult>;

// Joins libpq's messages, which end with a newline and may have several lines.
std::string one_line(const char* text) {
  std::string line(text == nullptr ? "" : text);
  while (line.ends_with('\n')) line.pop_back();
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

// Classes of SQLSTATE: appendix A of PostgreSQL's manual.
ErrorCode code_of(std::string_view state) {
  if (state == "23505" || state.starts_with("40")) return ErrorCode::conflict;
  if (state == "57014") return ErrorCode::timeout;
  if (state.starts_with("22")) return ErrorCode::invalid_data;
  // A server that is read-only, as after a failover (25006), or that found damage (XX001, XX002), is an outage.
  if (state == "25006" || state == "XX001" || state == "XX002") return ErrorCode::unavailable;
  if (state.empty() || state.starts_with("08") || state.starts_with("53") ||
      state.starts_with("55") || state.starts_with("57") || state.starts_with("58")) {
    return ErrorCode::unavailable;
  }
  return ErrorCode::internal;
}

void add_big_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    out += static_cast<char>(static_cast<unsigned char>(value >> shift));
  }
}

// The binary form of a one-dimensional array without NULLs: array_recv() of PostgreSQL.
std::string array_head(Oid element, std::size_t size) {
  std::string out;
  add_big_endian(out, size == 0 ? 0 : 1, 4);
  add_big_endian(out, 0, 4);
  add_big_endian(out, element, 4);
  if (size == 0) return out;
  add_big_endian(out, size, 4);
  add_big_endian(out, 1, 4);
  return out;
}

std::string array_of(std::span<const std::int64_t> numbers) {
  auto out = array_head(kInt8, numbers.size());
  for (const auto number : numbers) {
    add_big_endian(out, 8, 4);
    add_big_endian(out, std::bit_cast<std::uint64_t>(number), 8);
  }
  return out;
}

std::string array_of(Oid element, std::span<const std::string_view> items) {
  auto out = array_head(element, items.size());
  for (const auto item : items) {
    add_big_endian(out, item.size(), 4);
    out += item;
  }
  return out;
}

// PostgreSQL's texts have no NUL, and libpq would end a parameter there: a name would be found by its begin. The
// replacement character of Unicode stands for it.
std::string without_nul(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\0') {
      out += "\xEF\xBF\xBD";
    } else {
      out += c;
    }
  }
  return out;
}

// Parameters in libpq's form. Texts are copied, since libpq requires a NUL at their ends.
struct Bound {
  std::vector<std::string> texts;
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;

  void add(std::string text, bool is_binary) {
    texts.push_back(std::move(text));
    lengths.push_back(static_cast<int>(texts.back().size()));
    formats.push_back(is_binary ? 1 : 0);
    values.push_back("");  // set by seal()
  }
  void add_null() {
    add({}, false);
    values.back() = nullptr;
  }
  void add(const Param& param) {
    const auto& content = param.content();
    if (const auto* number = std::get_if<std::int64_t>(&content)) {
      add(std::to_string(*number), false);
    } else if (const auto* text = std::get_if<std::string_view>(&content)) {
      add(text->contains('\0') ? without_nul(*text) : std::string(*text), false);
    } else if (const auto* bytes = std::get_if<Param::Bytes>(&content)) {
      add(std::string(bytes->bytes), true);
    } else {
      add_null();
    }
  }
  void add(const PostgresParam& param) {
    if (const auto* plain = std::get_if<Param>(&param)) {
      add(*plain);
    } else if (const auto* array = std::get_if<ArrayParam>(&param)) {
      if (const auto* numbers = std::get_if<std::span<const std::int64_t>>(array)) {
        add(array_of(*numbers), true);
      } else {
        add(array_of(kText, std::get<std::span<const std::string_view>>(*array)), true);
      }
    } else {
      add(array_of(kBytea, std::get<BytesArray>(param).items), true);
    }
  }
  void seal() {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (values[i] != nullptr) values[i] = texts[i].data();
    }
  }
  [[nodiscard]] int size() const { return static_cast<int>(texts.size()); }
};

bool is_number_type(Oid type) {
  return type == kInt8 || type == kInt4 || type == kInt2 || type == kNumeric;
}

void add_cell(Rows& rows, const PGresult* result, int row, int column) {
  if (PQgetisnull(result, row, column) != 0) return rows.add_null();
  const std::string_view text(PQgetvalue(result, row, column),
                              static_cast<std::size_t>(PQgetlength(result, row, column)));
  const Oid type = PQftype(result, column);
  if (type == kBool) return rows.add_number(text == "t" ? 1 : 0);
  if (is_number_type(type)) {
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return rows.add_number(number);
  }
  if (type != kBytea) return rows.add_text(text);
  std::size_t size = 0;
  unsigned char* bytes =
      PQunescapeBytea(reinterpret_cast<const unsigned char*>(text.data()), &size);
  rows.add_text({reinterpret_cast<const char*>(bytes), size});
  PQfreemem(bytes);
}

Rows rows_of(const PGresult* result) {
  const int columns = PQnfields(result);
  Rows rows(static_cast<std::size_t>(columns));
  for (int row = 0; row < PQntuples(result); ++row) {
    for (int column = 0; column < columns; ++column) add_cell(rows, result, row, column);
  }
  std::int64_t changed = 0;
  const std::string_view tuples = PQcmdTuples(const_cast<PGresult*>(result));
  std::from_chars(tuples.data(), tuples.data() + tuples.size(), changed);
  rows.set_changed(columns > 0 ? 0 : changed);
  return rows;
}

class LibpqConnection final : public PostgresConnection {
 public:
  LibpqConnection(Handle handle, std::chrono::milliseconds answer_limit)
      : handle_(std::move(handle)),
        socket_(::fcntl(PQsocket(handle_.get()), F_DUPFD_CLOEXEC, 0)),
        answer_limit_(answer_limit) {
    PQsetnonblocking(handle_.get(), 1);
  }
  ~LibpqConnection() override {
    if (socket_ >= 0) ::close(socket_);
  }

  [[nodiscard]] Engine engine() const override { return Engine::postgres; }
  [[nodiscard]] bool is_usable() const override {
    return !is_ended_ && !is_interrupted_ && PQstatus(handle_.get()) == CONNECTION_OK &&
           !is_closed_by_server();
  }

  // A cancel request would need another connection, and block this thread as long as the server stands still. The server
  // ends the statement when it notices that the connection is closed: client_connection_check_interval.
  void interrupt() override {
    is_interrupted_ = true;
    ::shutdown(socket_, SHUT_RDWR);
  }

  // Returns the value of a query with one row and one column.
  Result<std::string> value(const char* sql) {
    PQsendQuery(handle_.get(), sql);
    const auto result = last_result();
    if (auto rows = taken(sql, result.get()); !rows) {
      return std::unexpected(std::move(rows.error()));
    }
    return std::string(PQntuples(result.get()) == 1 ? PQgetvalue(result.get(), 0, 0) : "");
  }

  Result<Rows> run(const Statement& statement, const Params& params) override {
    Bound bound;
    for (const Param& param : params) bound.add(param);
    bound.seal();
    if (statement.is_planned_by_values) {
      PQsendQueryParams(handle_.get(), std::string(statement.text(Engine::postgres)).c_str(),
                        bound.size(), nullptr, bound.values.data(), bound.lengths.data(),
                        bound.formats.data(), 0);
      return taken(statement.name, last_result().get());
    }
    if (auto prepared = prepare(statement); !prepared) {
      return std::unexpected(std::move(prepared.error()));
    }
    PQsendQueryPrepared(handle_.get(), std::string(statement.name).c_str(), bound.size(),
                        bound.values.data(), bound.lengths.data(), bound.formats.data(), 0);
    return taken(statement.name, last_result().get());
  }

  Result<void> run_script(std::string_view sql) override {
    PQsendQuery(handle_.get(), std::string(sql).c_str());
    if (auto rows = taken("script", last_result().get()); !rows) {
      return std::unexpected(std::move(rows.error()));
    }
    return {};
  }

  Result<std::vector<Rows>> run_pipeline(std::span<const Step> steps) override {
    for (const Step& step : steps) {
      if (auto prepared = prepare(*step.statement); !prepared) {
        return std::unexpected(std::move(prepared.error()));
      }
    }
    if (PQenterPipelineMode(handle_.get()) != 1) return lost("pipeline");
    for (const Step& step : steps) {
      Bound bound;
      for (const PostgresParam& param : step.params) bound.add(param);
      bound.seal();
      PQsendQueryPrepared(handle_.get(), std::string(step.statement->name).c_str(), bound.size(),
                          bound.values.data(), bound.lengths.data(), bound.formats.data(), 0);
    }
    PQpipelineSync(handle_.get());
    auto all = results_of(steps);
    PQexitPipelineMode(handle_.get());
    return all;
  }

  Result<std::vector<std::string>> wait_for_notifications(int timeout_ms) override {
    std::vector<std::string> payloads;
    take_notifications(payloads);
    if (!payloads.empty()) return payloads;
    pollfd waits{.fd = PQsocket(handle_.get()), .events = POLLIN, .revents = 0};
    if (::poll(&waits, 1, timeout_ms) < 0 && errno != EINTR) return lost("poll");
    if (PQconsumeInput(handle_.get()) != 1) return lost("notifications");
    take_notifications(payloads);
    return payloads;
  }

 protected:
  Result<void> begin() override { return run_script("BEGIN"); }
  Result<void> commit() override { return run_script("COMMIT"); }
  void roll_back() override {
    if (PQtransactionStatus(handle_.get()) == PQTRANS_IDLE) return;
    static_cast<void>(run_script("ROLLBACK"));
  }

 private:
  // Returns whether the server has closed an idle connection, as one that restarts does. PQstatus()
  // would tell only after the next call, which fails although nothing of it was done.
  [[nodiscard]] bool is_closed_by_server() const {
    for (int part = 0; part < kMaxUnread; ++part) {
      pollfd waits{.fd = PQsocket(handle_.get()), .events = POLLIN, .revents = 0};
      if (::poll(&waits, 1, 0) <= 0) return false;
      if (PQconsumeInput(handle_.get()) != 1) return true;
    }
    return false;
  }

  Result<void> prepare(const Statement& statement) {
    if (prepared_.contains(statement.name)) return {};
    PQsendPrepare(handle_.get(), std::string(statement.name).c_str(),
                  std::string(statement.text(Engine::postgres)).c_str(), 0, nullptr);
    if (auto rows = taken(statement.name, last_result().get()); !rows) {
      return std::unexpected(std::move(rows.error()));
    }
    prepared_.insert(statement.name);
    return {};
  }

  // Sends what is queued and waits until the next result is complete. Returns false when the connection is lost, or the
  // server stands still.
  bool wait_for_result() {
    while (!is_ended_) {
      const int unsent = PQflush(handle_.get());
      if (unsent == 0 && PQisBusy(handle_.get()) == 0) return true;
      const short events = unsent > 0 ? POLLIN | POLLOUT : POLLIN;
      pollfd waits{.fd = PQsocket(handle_.get()), .events = events, .revents = 0};
      const int ready =
          unsent < 0 ? -1 : ::poll(&waits, 1, static_cast<int>(answer_limit_.count()));
      if (ready < 0 && unsent >= 0 && errno == EINTR) continue;
      is_silent_ = ready == 0;
      if (ready <= 0 || PQconsumeInput(handle_.get()) != 1) is_ended_ = true;
    }
    return false;
  }

  // Returns the next result of the statements in progress: null at their end, and when the connection is lost.
  ResultHandle next_result() {
    return ResultHandle(wait_for_result() ? PQgetResult(handle_.get()) : nullptr);
  }

  // Returns the last result of the statements in progress, which is that of a failed one; null when the connection is
  // lost.
  ResultHandle last_result() {
    ResultHandle last;
    while (auto result = next_result()) last = std::move(result);
    return is_ended_ ? nullptr : std::move(last);
  }

  std::unexpected<Error> lost(std::string_view what) {
    is_ended_ = true;
    if (is_interrupted_) return fail(ErrorCode::timeout, std::string(what) + ": interrupted");
    return fail(ErrorCode::unavailable,
                std::string(what) + ": " +
                    (is_silent_ ? "PostgreSQL has not answered for " +
                                      std::to_string(answer_limit_.count()) + " ms"
                                : one_line(PQerrorMessage(handle_.get()))));
  }

  Result<Rows> taken(std::string_view what, const PGresult* result) {
    const auto status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return rows_of(result);
    if (result == nullptr || PQstatus(handle_.get()) != CONNECTION_OK) return lost(what);
    if (status == PGRES_PIPELINE_ABORTED) {
      return fail(ErrorCode::internal, std::string(what) + ": an earlier step failed");
    }
    const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    // The server closes the connection after the errors 57P01 to 57P05, and an error without a code is libpq's own: a
    // lost connection. PQstatus() would notice either only in the next call.
    if (state == nullptr || std::string_view(state).starts_with("57P")) is_ended_ = true;
    const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    return fail(code_of(state == nullptr ? "" : state),
                std::string(what) + ": " + one_line(message));
  }

  // Returns the results of a pipeline. Reads up to its end, also after a failure.
  Result<std::vector<Rows>> results_of(std::span<const Step> steps) {
    std::vector<Rows> all;
    std::optional<Error> failure;
    for (const Step& step : steps) {
      auto rows = taken(step.statement->name, next_result().get());
      if (!rows && !failure) failure = std::move(rows.error());
      if (rows) all.push_back(std::move(*rows));
      // A NULL ends the results of each step.
      next_result();
    }
    next_result();  // of the synchronisation point
    if (failure) return std::unexpected(std::move(*failure));
    return all;
  }

  void take_notifications(std::vector<std::string>& payloads) {
    while (PGnotify* notification = PQnotifies(handle_.get())) {
      payloads.emplace_back(notification->extra);
      PQfreemem(notification);
    }
  }

  Handle handle_;
  int socket_;  // a duplicate, which stays open when libpq closes its own
  std::chrono::milliseconds answer_limit_;
  std::set<std::string_view> prepared_;
  bool is_ended_ = false;
  bool is_silent_ = false;  // has been, for answer_limit_
  std::atomic<bool> is_interrupted_ = false;
};

// Checks settings that a durable commit needs. Each error names the remedy.
Result<void> check_server(LibpqConnection& connection, int version) {
  if (version < kMinVersion) {
    return fail(ErrorCode::unsupported, "PostgreSQL " + std::to_string(version / 10'000) +
                                            " is too old: 14 or newer is required");
  }
  for (const auto& [name, wanted] : kDurable) {
    const auto found = connection.value((std::string("SHOW ") + name).c_str());
    if (!found) return std::unexpected(found.error());
    if (*found == wanted) continue;
    return fail(ErrorCode::unsupported, std::string("PostgreSQL's setting ") + name + " is \"" +
                                            *found + "\": set it to \"" + wanted +
                                            "\", or acknowledged events could be lost");
  }
  const auto commit = connection.value("SHOW synchronous_commit");
  if (!commit) return std::unexpected(commit.error());
  if (*commit == "off") {
    return fail(ErrorCode::unsupported,
                "PostgreSQL's setting synchronous_commit is \"off\": set it to \"on\", or "
                "acknowledged events could be lost");
  }
  const auto is_standby = connection.value("SELECT pg_is_in_recovery()");
  if (!is_standby) return std::unexpected(is_standby.error());
  if (*is_standby != "f") {
    return fail(ErrorCode::unavailable,
                "this PostgreSQL server is a standby: connect to the primary");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<PostgresConnection>> open_postgres(const Location& location,
                                                          const std::string& application_name) {
  std::string password;
  if (!location.password_file.empty()) {
    auto read = read_small_file(location.password_file);
    if (!read) return fail(location.password_file, std::move(read.error()));
    password = std::move(*read);
    while (password.ends_with('\n') || password.ends_with('\r')) password.pop_back();
  }
  // Those before dbname are defaults, which the address may set otherwise: of several hosts the primary, and a host that
  // is gone without a word is noticed in 15 seconds.
  std::vector<std::pair<const char*, const char*>> parameters{
      {"target_session_attrs", "primary"},
      {"keepalives_idle", "5"},
      {"keepalives_interval", "5"},
      {"keepalives_count", "2"},
      {"tcp_user_timeout", "15000"},
      {"dbname", location.dsn.c_str()},
      {"application_name", application_name.c_str()},
      {"connect_timeout", "5"},
      {"client_encoding", "UTF8"},
      {"options",
       "-c lock_timeout=2000 -c statement_timeout=30000 -c "
       "idle_in_transaction_session_timeout=10000 -c client_connection_check_interval=1000"}};
  if (!password.empty()) parameters.emplace_back("password", password.c_str());
  parameters.emplace_back(nullptr, nullptr);
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : parameters) {
    keys.push_back(key);
    values.push_back(value);
  }
  Handle handle(PQconnectdbParams(keys.data(), values.data(), 1));
  std::ranges::fill(password, '\0');
  if (PQstatus(handle.get()) != CONNECTION_OK) {
    return fail(ErrorCode::unavailable,
                "cannot connect to PostgreSQL: " + one_line(PQerrorMessage(handle.get())));
  }
  PQsetNoticeProcessor(handle.get(), [](void*, const char*) {}, nullptr);
  const int version = PQserverVersion(handle.get());
  auto connection = std::make_unique<LibpqConnection>(std::move(handle), location.answer_limit);
  if (auto checked = check_server(*connection, version); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  return connection;
}

}  // namespace gitops::store
