#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/metrics.hpp"
#include "common/store/database.hpp"
#include "common/store/databases.hpp"
#include "common/store/postgres_connection.hpp"
#include "common/store/sqlite_connection.hpp"
#include "control-plane/accounts/account_store.hpp"
#include "control-plane/accounts/api_keys.hpp"
#include "control-plane/accounts/authenticator.hpp"
#include "control-plane/accounts/passwords.hpp"
#include "control-plane/accounts/sessions.hpp"
#include "control-plane/storage/schema.hpp"
#include "support/log_capture.hpp"
#include "support/run_coro.hpp"

namespace gitops::control_plane_server {

inline constexpr Micros kSecond = 1'000'000;
inline constexpr Micros kHour = 3'600 * kSecond;
inline constexpr Micros kNow = 1'790'000'000 * kSecond;
// A low cost, so that tests are quick.
inline constexpr PasswordCost kCheap{.memory_kib = 16, .passes = 1, .lanes = 1};

inline constexpr store::Statement kTestAddRuntime{
    .name = "test.add_runtime",
    .sql = "INSERT INTO runtime (account, name, arguments, created_at) VALUES ($1, $2, '{}', $3)"};
inline constexpr store::Statement kTestDropRuntime{
    .name = "test.drop_runtime", .sql = "DELETE FROM runtime WHERE account = $1 AND name = $2"};

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// An account with the administrator ann, the user bob and the runtime prod, and another account with the user eve.
struct SampleAccounts {
  Account acme;
  Account other;
  User ann;
  User bob;
  User eve;
  Secret ann_key;
  Secret bob_key;
  Secret eve_key;
  Secret prod_token;
  Secret bob_session;
};

inline SampleAccounts make_sample(store::Connection& db, Micros now = kNow) {
  const auto password = [](const char* text) {
    return hash_password(Secret(std::string(text)), "0123456789abcdef", kCheap);
  };
  SampleAccounts sample;
  sample.acme = must(create_account(db, "acme", now));
  sample.other = must(create_account(db, "other", now));
  sample.ann = must(create_user(db, sample.acme.number,
                                {.name = "ann",
                                 .email = "ann@acme.example",
                                 .password = password("ann's password"),
                                 .is_system_admin = true,
                                 .is_admin = true},
                                now));
  sample.bob =
      must(create_user(db, sample.acme.number,
                       {.name = "bob", .email = {}, .password = password("bob's password")}, now));
  sample.eve =
      must(create_user(db, sample.other.number,
                       {.name = "eve", .email = {}, .password = password("eve's password")}, now));
  const auto key = [&](const Account& account, const User& user) {
    return must(create_user_key(db, account.number, user.id, {.name = "cli", .scopes = {}}, now))
        .text;
  };
  sample.ann_key = key(sample.acme, sample.ann);
  sample.bob_key = key(sample.acme, sample.bob);
  sample.eve_key = key(sample.other, sample.eve);
  must(db.run(kTestAddRuntime, {sample.acme.number, "prod", now}));
  sample.prod_token = must(create_runtime_token(db, sample.acme.number, "prod", now)).text;
  sample.bob_session = must(create_session(db, sample.bob.id, now));
  return sample;
}

// A connection to an empty database of the control plane, for functions that block.
class StoreBed {
 public:
  explicit StoreBed(store::Engine engine) : files_(engine) {
    const auto& location = files_.location();
    if (engine == store::Engine::sqlite) {
      connection_ = must(store::open_sqlite(location.path, store::Access::read_write, 1024 * 1024));
    } else {
      connection_ = must(store::open_postgres(location, "test"));
    }
    must(store::migrate(*connection_, migrations()));
  }
  store::Connection& connection() { return *connection_; }

 private:
  test::TestDatabase files_;
  std::unique_ptr<store::Connection> connection_;
};

// A database with the sample accounts, for coroutines.
struct AccountsFixture {
  explicit AccountsFixture(const Executor& on, store::Engine engine = store::Engine::sqlite)
      : executor(on), files(engine) {
    must(database.open(migrations()));
  }
  Task<> fill() {
    auto filled = co_await database.write(
        soon(), [now = micros_at(wall_now())](store::Connection& db) -> Result<SampleAccounts> {
          return make_sample(db, now);
        });
    sample = must(std::move(filled));
  }
  static Deadline soon() { return deadline_after(std::chrono::seconds(20)); }
  template <class Work>
  Task<std::invoke_result_t<Work&, store::Connection&>> write(Work work) {
    return database.write(soon(), std::move(work));
  }
  // Returns whether the exposition of the metrics contains this counter: `name{labels} value`.
  [[nodiscard]] bool counts(const std::string& line) {
    return metrics.expose().contains("\n" + line + "\n");
  }

  test::LogCapture log;
  Executor executor;
  test::TestDatabase files;
  Metrics metrics;
  store::Database database{{.location = files.location(), .name = "test"}, metrics};
  SampleAccounts sample;
};

inline void with_accounts(const std::function<Task<>(AccountsFixture&)>& body,
                          store::Engine engine = store::Engine::sqlite) {
  test::run_in_test_time([&]() -> Task<> {
    AccountsFixture fixture(co_await asio::this_coro::executor, engine);
    co_await fixture.fill();
    co_await body(fixture);
    fixture.database.close(std::chrono::seconds(2));
    for (const auto* secret :
         {&fixture.sample.bob_key, &fixture.sample.prod_token, &fixture.sample.bob_session}) {
      EXPECT_FALSE(fixture.log.text().contains(secret->reveal()));
    }
  });
}

inline http::Headers authorization(const Secret& token) {
  return {{"Authorization", std::string(token.reveal())}};
}

}  // namespace gitops::control_plane_server
